package facts_test

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestTasks(t *testing.T) {
	facts := []fact{
		{"a task finds this in its environment", environment, both},
		{"what a task leaves behind is killed when it ends", leavesNothing, both},
		{"a sticky disk comes along to the next allocation", stickyDisk, both},
		{"memory beyond the limit is a kill without the word OOM", outOfMemory, both},
		{"reserved cores are the affinity of the task", affinity, both},
	}
	for title, s := range stories() {
		facts = append(facts, fact{"events: " + title, s.prove, both})
	}
	hold(t, nomadagent.Options{}, facts)
}

// state is that of the job's task t, and all that it has written.
func (c cluster) state(t *testing.T) (api.TaskState, string) {
	t.Helper()
	list := c.allocs(t)
	if len(list) == 0 || list[0].TaskStates["t"] == nil {
		return api.TaskState{}, ""
	}
	status, text := c.do(t, "GET", "/v1/client/fs/logs/"+list[0].ID+"?task=t&type=stdout&plain=true", "")
	if status != 200 {
		text = ""
	}
	return *list[0].TaskStates["t"], text
}

// awaitTask waits until the task has the state, "" = any, and has written the text.
func (c cluster) awaitTask(t *testing.T, state, text string) (now api.TaskState, said string) {
	t.Helper()
	await(t, "the task", func() error {
		if now, said = c.state(t); state != "" && now.State != state || !strings.Contains(said, text) {
			return fmt.Errorf("it is %s and has written %q, want %s and %q", now.State, said, state, text)
		}
		return nil
	})
	return now, said
}

// story is what happens to a task and what its events say about it.
type story struct {
	script string
	change func(*api.Job, *api.TaskGroup, *api.Task)
	do     func(*testing.T, cluster) // once the task has written "ready"
	want   []string                  // of each event the type, what is shown, and the exit code and signal
	failed bool
	said   string
}

var (
	jitter = regexp.MustCompile(`restarting in [0-9.]+m?s`)
	hex    = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)
)

func events(s api.TaskState) []string {
	var out []string
	for _, e := range s.Events {
		line := e.Type + ": " + jitter.ReplaceAllString(e.DisplayMessage, "restarting in T")
		if e.Type == api.TaskTerminated {
			line += fmt.Sprintf(" (%s, %s, %s)", e.Details["exit_code"], e.Details["signal"], e.Details["oom_killed"])
		}
		out = append(out, line)
	}
	return out
}

func killed(t *testing.T, c cluster) {
	if _, _, err := c.Jobs().Deregister(c.id, false, nil); err != nil {
		t.Error(err)
	}
}

func signalled(name string) func(*testing.T, cluster) {
	return func(t *testing.T, c cluster) {
		if err := c.Allocations().Signal(c.alloc(t, c.allocs(t)[0].ID), nil, "t", name); err != nil {
			t.Error(err)
		}
	}
}

func restarted(t *testing.T, c cluster) {
	if err := c.Allocations().Restart(c.alloc(t, c.allocs(t)[0].ID), "t", nil); err != nil {
		t.Error(err)
	}
}

func (s story) prove(t *testing.T, c cluster) {
	j := c.job(s.script)
	if s.change != nil {
		s.change(j, j.TaskGroups[0], task(j))
	}
	c.register(t, j)
	if s.do != nil {
		c.awaitTask(t, "running", "ready")
		s.do(t, c)
	}
	got, _ := c.awaitTask(t, "dead", "")
	if diff := cmp.Diff(s.want, events(got)); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if got.Failed != s.failed || got.FinishedAt.IsZero() {
		t.Errorf("failed %t, finished at %v", got.Failed, got.FinishedAt)
	}
	if s.said != "" {
		if _, said := c.awaitTask(t, "", s.said); said != s.said {
			t.Errorf("it wrote %q, want %q", said, s.said)
		}
	}
}

const (
	received = "Received: Task received by client"
	setup    = "Task Setup: Building Task Directory"
	started  = "Started: Task started by client"
	killing5 = "Killing: Sent interrupt. Waiting 5s before force killing"
	ended    = "Killed: Task successfully killed"
)

func stories() map[string]story {
	return map[string]story{
		"work that is done": {script: "echo out; echo err >&2", want: []string{received, setup, started, "Terminated: Exit Code: 0 (0, 0, false)"}, said: "out\n"},
		"work that fails and may not be tried again": {
			script: "exit 3", failed: true,
			want: []string{received, setup, started, "Terminated: Exit Code: 3 (3, 0, false)", "Not Restarting: Policy allows no restarts"},
		},
		"work that fails until its attempts are used up": {
			script: "exit 4", failed: true,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
				t.RestartPolicy = &api.RestartPolicy{Attempts: new(1), Delay: new(100 * time.Millisecond), Interval: new(time.Hour), Mode: new("fail")}
			},
			want: []string{
				received, setup, started, "Terminated: Exit Code: 4 (4, 0, false)", "Restarting: Task restarting in T",
				started, "Terminated: Exit Code: 4 (4, 0, false)", `Not Restarting: Exceeded allowed attempts 1 in interval 1h0m0s and mode is "fail"`,
			},
		},
		"a task that saves itself when it is interrupted": {
			script: "trap 'echo saved; exit 0' INT; echo ready; while :; do sleep 0.1; done", do: killed,
			want: []string{received, setup, started, killing5, "Terminated: Exit Code: 0 (0, 0, false)", ended}, said: "ready\nsaved\n",
		},
		"a task that dies of its kill_signal": {
			script: "echo ready; while :; do sleep 0.1; done", do: killed,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
				t.KillSignal, t.KillTimeout = "SIGTERM", new(20*time.Second)
			},
			want: []string{received, setup, started, "Killing: Sent interrupt. Waiting 20s before force killing", "Terminated: Exit Code: 143, Signal: 15 (143, 15, false)", ended},
		},
		"a task that hears no signal": {
			script: "trap '' INT; echo ready; while :; do sleep 0.1; done", do: killed,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.KillTimeout = new(500 * time.Millisecond) },
			want:   []string{received, setup, started, "Killing: Sent interrupt. Waiting 500ms before force killing", "Terminated: Exit Code: 137, Signal: 9 (137, 9, false)", ended},
		},
		"a task with a shutdown delay": {
			script: "trap 'echo end; exit 7' INT; echo ready; while :; do sleep 0.1; done", do: killed,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.ShutdownDelay = 300 * time.Millisecond },
			want: []string{
				received, setup, started, killing5, "Waiting for shutdown delay: Waiting for shutdown_delay of 300ms before killing the task.",
				"Terminated: Exit Code: 7 (7, 0, false)", ended,
			},
		},
		"a signal": {
			script: "trap 'echo heard; exit 0' USR1; echo ready; while :; do sleep 0.1; done",
			do:     signalled("SIGUSR1"),
			want:   []string{received, setup, started, "Signaling: Task being sent a signal", "Terminated: Exit Code: 0 (0, 0, false)"}, said: "ready\nheard\n",
		},
		"an unknown signal is SIGINT": {
			script: "echo ready; while :; do sleep 0.1; done", failed: true,
			do:   signalled("USR1"),
			want: []string{received, setup, started, "Signaling: Task being sent a signal", "Terminated: Exit Code: 130, Signal: 2 (130, 2, false)", "Not Restarting: Policy allows no restarts"},
		},
		"a restart in place": {
			script: "test -e $NOMAD_TASK_DIR/was && { echo again; exit 0; }; touch $NOMAD_TASK_DIR/was; echo ready; trap 'exit 5' INT; while :; do sleep 0.1; done",
			do:     restarted,
			want: []string{
				received, setup, started, "Restart Signaled: User requested task to restart", "Terminated: Exit Code: 5 (5, 0, false)",
				"Restarting: Task restarting in T", started, "Terminated: Exit Code: 0 (0, 0, false)",
			},
			said: "ready\nagain\n",
		},
		"a program that does not exist": {
			failed: true,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
				t.Config["command"] = "/no/such/program"
				t.RestartPolicy.Attempts = new(3)
			},
			want: []string{received, setup, "Driver Failure: failed to launch command with executor: rpc error: code = Unknown desc = binary \"/no/such/program\" could not be found", "Not Restarting: Error was unrecoverable"},
		},
		"a block that the driver does not know": {
			failed: true,
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
				t.Config["tuning"] = []map[string]any{{"mode": "apply"}}
			},
			want: []string{received, setup, "Failed Validation: 2 errors occurred:\n\t* failed to parse config: \n\t* Invalid label: No argument or block type is named \"tuning\".\n\n", "Not Restarting: Policy allows no restarts"},
		},
		"interpolation": {
			script: `echo "$1|$2|$3|$4|$X|$NOMAD_META_a.b|$NOMAD_META_K"`,
			change: func(j *api.Job, _ *api.TaskGroup, t *api.Task) {
				j.Meta = map[string]string{"k": "v", "a-b": "dash"}
				t.Env = map[string]string{"X": "${NOMAD_TASK_NAME}-${NOMAD_META_k}-${unknown.name}"}
				t.Config["args"] = append(t.Config["args"].([]string), "sh", "${NOMAD_JOB_ID}", `${env["X"]}`, "${NOMAD_META_k}", "$${literal}")
			},
			want: []string{received, setup, started, "Terminated: Exit Code: 0 (0, 0, false)"},
			said: "events-interpolation|t-v-${unknown.name}|v|${literal}|t-v-${unknown.name}|.b|v\n",
		},
	}
}

// environment is without what belongs to the machine.
func environment(t *testing.T, c cluster) {
	j := c.job("")
	// A shell would drop the names with a dot.
	task(j).Config = map[string]any{"command": "/usr/bin/env"}
	j.Name = new("env")
	j.Meta = map[string]string{"shared": "job", "of.job": "1", "with-dash": "2"}
	j.TaskGroups[0].Meta = map[string]string{"shared": "group"}
	task(j).Meta = map[string]string{"shared": "task", "Mixed": "${NOMAD_TASK_NAME}"}
	task(j).Env = map[string]string{"NOMAD_OWN": "${NOMAD_META_shared}"}
	c.register(t, j)
	_, text := c.awaitTask(t, "dead", "NOMAD_TASK_NAME=t")
	got := map[string]string{}
	for line := range strings.Lines(text) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(k, "NOMAD_") {
			continue
		}
		v = strings.ReplaceAll(hex.ReplaceAllString(v, "ALLOC"), c.id, "ID")
		if i := strings.Index(v, "ALLOC/"); i >= 0 {
			v = v[i:]
		}
		if k == "NOMAD_SHORT_ALLOC_ID" {
			v = strconv.Itoa(len(v))
		}
		got[k] = v
	}
	if diff := cmp.Diff(wantedEnvironment(), got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func wantedEnvironment() map[string]string {
	return map[string]string{
		"NOMAD_ALLOC_DIR": "ALLOC/alloc", "NOMAD_ALLOC_ID": "ALLOC", "NOMAD_ALLOC_INDEX": "0", "NOMAD_ALLOC_NAME": "ID.g[0]", "NOMAD_CPU_CORES": " ", "NOMAD_CPU_LIMIT": "50",
		"NOMAD_DC": "dc1", "NOMAD_GROUP_NAME": "g", "NOMAD_JOB_ID": "ID", "NOMAD_JOB_NAME": "env", "NOMAD_MEMORY_LIMIT": "32",
		"NOMAD_META_MIXED": "t", "NOMAD_META_Mixed": "t", "NOMAD_META_OF.JOB": "1", "NOMAD_META_SHARED": "task", "NOMAD_META_WITH_DASH": "2",
		"NOMAD_META_of.job": "1", "NOMAD_META_shared": "task", "NOMAD_META_with_dash": "2", "NOMAD_NAMESPACE": "default", "NOMAD_OWN": "task",
		"NOMAD_PARENT_CGROUP": "nomad.slice", "NOMAD_REGION": "global", "NOMAD_SECRETS_DIR": "ALLOC/t/secrets", "NOMAD_SHORT_ALLOC_ID": "8",
		"NOMAD_TASK_DIR": "ALLOC/t/local", "NOMAD_TASK_NAME": "t",
	}
}

func leavesNothing(t *testing.T, c cluster) {
	// Its own session, and no signal that it hears.
	c.register(t, c.job(`setsid sh -c 'trap "" INT TERM; while :; do sleep 0.1; done' & echo $!; sleep 0.3`))
	_, text := c.awaitTask(t, "dead", "\n")
	pid := strings.TrimSpace(text)
	await(t, "the end of process "+pid, func() error {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("it lives: %s", stat)
		}
		return nil
	})
}

func stickyDisk(t *testing.T, c cluster) {
	j := c.job("cat $NOMAD_ALLOC_DIR/data/a $NOMAD_TASK_DIR/b $NOMAD_ALLOC_DIR/c; echo one >$NOMAD_ALLOC_DIR/data/a; echo two >$NOMAD_TASK_DIR/b; echo three >$NOMAD_ALLOC_DIR/c; " + lasting)
	j.TaskGroups[0].EphemeralDisk = &api.EphemeralDisk{Sticky: new(true)}
	first := c.runs(t, j)
	await(t, "the files", func() error {
		if got := bodyOf(t, c.get(t, "/v1/client/fs/cat/"+first.ID+"?path=alloc/c")); got != "three\n" {
			return fmt.Errorf("the last is %q", got)
		}
		return nil
	})
	task(j).Env = map[string]string{"A": "1"}
	c.register(t, j)
	c.output(t, c.awaitAllocs(t, "complete", "running")[1].ID, "one\ntwo\n")
}

func outOfMemory(t *testing.T, c cluster) {
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and cgroups of version 1")
	}
	c.register(t, c.job("exec tail /dev/zero"))
	got, _ := c.awaitTask(t, "dead", "")
	want := []string{received, setup, started, "Terminated: Exit Code: 137, Signal: 9 (137, 9, false)", "Not Restarting: Policy allows no restarts"}
	if diff := cmp.Diff(want, events(got)); diff != "" {
		t.Error(diff)
	}
}

func affinity(t *testing.T, c cluster) {
	c.register(t, cores(c.job("grep Cpus_allowed_list /proc/self/status; echo $NOMAD_CPU_CORES"), 1))
	_, text := c.awaitTask(t, "dead", "\n")
	list, core, _ := strings.Cut(strings.TrimPrefix(text, "Cpus_allowed_list:\t"), "\n")
	if list != strings.TrimSpace(core) || list == "" {
		t.Errorf("%q", text)
	}
}
