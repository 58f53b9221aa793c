package task_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/nomad/api"
	"go.uber.org/goleak"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/nomadserver/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:fix inline

// job is a batch job of one shell script, as the agent registers it.
func job(id, script string, change func(*api.Job, *api.TaskGroup, *api.Task)) *api.Job {
	t := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", script})
	t.Resources = &api.Resources{CPU: new(100), MemoryMB: new(64)}
	g := api.NewTaskGroup("g", 1).AddTask(t)
	g.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	g.ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	j := api.NewBatchJob(id, id, "global", 50).AddTaskGroup(g)
	if change != nil {
		change(j, g, t)
	}
	j.Canonicalize()
	return j
}

// running is a task that runs here or on a real agent.
type running interface {
	state() api.TaskState
	kill()
	signal(string) error
	restart() error
	stdout() string
}

func await(t *testing.T, r running, what string, ok func(api.TaskState) bool) api.TaskState {
	t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		s := r.state()
		if ok(s) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %+v", what, s)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func isDead(s api.TaskState) bool { return s.State == "dead" }

func said(r running, text string) func(api.TaskState) bool {
	return func(api.TaskState) bool { return strings.Contains(r.stdout(), text) }
}

// here runs a job's task in this process.
type here struct {
	t    *testing.T
	task *task.Task
	dir  string
	id   string

	mu     sync.Mutex
	states []api.TaskState
}

func runHere(t *testing.T, j *api.Job) *here {
	t.Helper()
	return startHere(t, task.Spec{AllocID: "8a7f2c1e-0b1d-4c56-9c3e-" + fmt.Sprintf("%012x", time.Now().UnixNano()&0xffffffffffff), Dir: t.TempDir(), Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0]})
}

func startHere(t *testing.T, s task.Spec) *here {
	t.Helper()
	h := &here{t: t, dir: s.Dir, id: s.AllocID}
	if s.Alloc == nil {
		s.Alloc = &api.Allocation{ID: s.AllocID, Name: *s.Job.ID + ".g[0]"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	started, err := task.Start(ctx, s, func(st api.TaskState) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.states = append(h.states, st)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.task = started
	t.Cleanup(func() {
		cancel()
		<-started.Done()
	})
	return h
}

func (h *here) state() api.TaskState {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.states) == 0 {
		return api.TaskState{}
	}
	return h.states[len(h.states)-1]
}
func (h *here) kill()                 { h.task.Kill() }
func (h *here) signal(s string) error { return h.task.Signal(s) }
func (h *here) restart() error        { return h.task.Restart() }
func (h *here) stdout() string        { return read(h.t, h.task.Logs("stdout", 0, false)) }

func read(t *testing.T, r io.ReadCloser) string {
	t.Helper()
	defer r.Close()
	text, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// there runs it on a real agent.
type there struct {
	t   *testing.T
	c   *api.Client
	job string
}

func runThere(t *testing.T, c *api.Client, j *api.Job) *there {
	t.Helper()
	if _, _, err := c.Jobs().Register(j, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _, _ = c.Jobs().Deregister(*j.ID, true, nil) })
	return &there{t: t, c: c, job: *j.ID}
}

func (r *there) alloc() *api.Allocation {
	list, _, err := r.c.Jobs().Allocations(r.job, true, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(list) == 0 {
		return nil
	}
	a, _, err := r.c.Allocations().Info(list[0].ID, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

func (r *there) state() api.TaskState {
	if a := r.alloc(); a != nil && a.TaskStates["t"] != nil {
		return *a.TaskStates["t"]
	}
	return api.TaskState{}
}

func (r *there) kill() {
	if _, _, err := r.c.Jobs().Deregister(r.job, false, nil); err != nil {
		r.t.Fatal(err)
	}
}
func (r *there) signal(s string) error { return r.c.Allocations().Signal(r.alloc(), nil, "t", s) }
func (r *there) restart() error        { return r.c.Allocations().Restart(r.alloc(), "t", nil) }
func (r *there) stdout() string {
	a := r.alloc()
	if a == nil {
		return ""
	}
	body, err := r.c.Raw().Response("/v1/client/fs/logs/"+a.ID+"?task=t&type=stdout&plain=true", nil)
	if err != nil {
		return ""
	}
	return read(r.t, body)
}

// story is what happens to a task and what its events say of it.
type story struct {
	script string
	change func(*api.Job, *api.TaskGroup, *api.Task)
	do     func(*testing.T, running)
	want   []string // of each event the type, what is shown, and the exit code and signal
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

func killWhenSaid(text string) func(*testing.T, running) {
	return func(t *testing.T, r running) {
		await(t, r, text, said(r, text))
		r.kill()
	}
}

const (
	received = "Received: Task received by client"
	setup    = "Task Setup: Building Task Directory"
	started  = "Started: Task started by client"
	killing5 = "Killing: Sent interrupt. Waiting 5s before force killing"
	killed   = "Killed: Task successfully killed"
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
			change: func(_ *api.Job, g *api.TaskGroup, _ *api.Task) {
				g.RestartPolicy = &api.RestartPolicy{Attempts: new(1), Delay: new(100 * time.Millisecond), Interval: new(time.Hour), Mode: new("fail")}
			},
			want: []string{
				received, setup, started, "Terminated: Exit Code: 4 (4, 0, false)", "Restarting: Task restarting in T",
				started, "Terminated: Exit Code: 4 (4, 0, false)", `Not Restarting: Exceeded allowed attempts 1 in interval 1h0m0s and mode is "fail"`,
			},
		},
		"a task that saves itself when it is interrupted": {
			script: "trap 'echo saved; exit 0' INT; echo ready; while :; do sleep 0.1; done", do: killWhenSaid("ready"),
			want: []string{received, setup, started, killing5, "Terminated: Exit Code: 0 (0, 0, false)", killed}, said: "ready\nsaved\n",
		},
		"a task that dies of its kill_signal": {
			script: "echo ready; while :; do sleep 0.1; done", do: killWhenSaid("ready"),
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
				t.KillSignal, t.KillTimeout = "SIGTERM", new(20*time.Second)
			},
			want: []string{received, setup, started, "Killing: Sent interrupt. Waiting 20s before force killing", "Terminated: Exit Code: 143, Signal: 15 (143, 15, false)", killed},
		},
		"a task that hears no signal": {
			script: "trap '' INT; echo ready; while :; do sleep 0.1; done", do: killWhenSaid("ready"),
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.KillTimeout = new(500 * time.Millisecond) },
			want:   []string{received, setup, started, "Killing: Sent interrupt. Waiting 500ms before force killing", "Terminated: Exit Code: 137, Signal: 9 (137, 9, false)", killed},
		},
		"a task with a shutdown delay": {
			script: "trap 'echo end; exit 7' INT; echo ready; while :; do sleep 0.1; done", do: killWhenSaid("ready"),
			change: func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.ShutdownDelay = 300 * time.Millisecond },
			want: []string{
				received, setup, started, killing5, "Waiting for shutdown delay: Waiting for shutdown_delay of 300ms before killing the task.",
				"Terminated: Exit Code: 7 (7, 0, false)", killed,
			},
		},
		"a signal": {
			script: "trap 'echo heard; exit 0' USR1; echo ready; while :; do sleep 0.1; done",
			do: func(t *testing.T, r running) {
				await(t, r, "ready", said(r, "ready"))
				if err := r.signal("SIGUSR1"); err != nil {
					t.Error(err)
				}
			},
			want: []string{received, setup, started, "Signaling: Task being sent a signal", "Terminated: Exit Code: 0 (0, 0, false)"}, said: "ready\nheard\n",
		},
		"a signal that nobody knows is SIGINT": {
			script: "echo ready; while :; do sleep 0.1; done", failed: true,
			do: func(t *testing.T, r running) {
				await(t, r, "ready", said(r, "ready"))
				if err := r.signal("USR1"); err != nil {
					t.Error(err)
				}
			},
			want: []string{received, setup, started, "Signaling: Task being sent a signal", "Terminated: Exit Code: 130, Signal: 2 (130, 2, false)", "Not Restarting: Policy allows no restarts"},
		},
		"a restart in place": {
			script: "test -e $NOMAD_TASK_DIR/was && { echo again; exit 0; }; touch $NOMAD_TASK_DIR/was; echo ready; trap 'exit 5' INT; while :; do sleep 0.1; done",
			do: func(t *testing.T, r running) {
				await(t, r, "ready", said(r, "ready"))
				if err := r.restart(); err != nil {
					t.Error(err)
				}
			},
			want: []string{
				received, setup, started, "Restart Signaled: User requested task to restart", "Terminated: Exit Code: 5 (5, 0, false)",
				"Restarting: Task restarting in T", started, "Terminated: Exit Code: 0 (0, 0, false)",
			},
			said: "ready\nagain\n",
		},
		"a program that does not exist": {
			failed: true,
			change: func(_ *api.Job, g *api.TaskGroup, t *api.Task) {
				t.Config["command"] = "/no/such/program"
				g.RestartPolicy.Attempts = new(3)
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
			said: "interpolation|t-v-${unknown.name}|v|${literal}|t-v-${unknown.name}|.b|v\n",
		},
	}
}

func tell(t *testing.T, r running, s story) {
	t.Helper()
	if s.do != nil {
		s.do(t, r)
	}
	got := await(t, r, "the end", isDead)
	if diff := cmp.Diff(s.want, events(got)); diff != "" {
		t.Errorf("events (-want +got)\n%s", diff)
	}
	if got.Failed != s.failed || got.FinishedAt.IsZero() {
		t.Errorf("failed %t, finished at %v", got.Failed, got.FinishedAt)
	}
	if s.said != "" {
		await(t, r, "its words", said(r, s.said))
		if out := r.stdout(); out != s.said {
			t.Errorf("said %q, want %q", out, s.said)
		}
	}
}

func name(title string) string { return strings.ReplaceAll(title, " ", "-") }

func TestATasksEventsTellItsStory(t *testing.T) {
	t.Parallel()
	for title, s := range stories() {
		t.Run(title, func(t *testing.T) {
			t.Parallel()
			tell(t, runHere(t, job(name(title), s.script, s.change)), s)
		})
	}
}

func TestARealAgentTellsTheSameStories(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	c := a.Client(t)
	for title, s := range stories() {
		t.Run(title, func(t *testing.T) { tell(t, runThere(t, c, job(name(title), s.script, s.change)), s) })
	}
}

// environment is what a task finds, without what belongs to the machine.
func environment(t *testing.T, r running) map[string]string {
	t.Helper()
	await(t, r, "the end", isDead)
	await(t, r, "the environment", said(r, "NOMAD_TASK_NAME=t"))
	out := map[string]string{}
	for line := range strings.Lines(r.stdout()) {
		k, v, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(k, "NOMAD_") {
			continue
		}
		v = hex.ReplaceAllString(v, "ALLOC")
		if i := strings.Index(v, "ALLOC/"); i >= 0 {
			v = v[i:]
		}
		if k == "NOMAD_SHORT_ALLOC_ID" {
			v = strconv.Itoa(len(v))
		}
		out[k] = v
	}
	return out
}

func environmentJob() *api.Job {
	return job("env", "", func(j *api.Job, g *api.TaskGroup, t *api.Task) {
		// A shell would drop the names with a dot.
		t.Config = map[string]any{"command": "/usr/bin/env"}
		j.Meta = map[string]string{"shared": "job", "of.job": "1", "with-dash": "2"}
		g.Meta = map[string]string{"shared": "group"}
		t.Meta = map[string]string{"shared": "task", "Mixed": "${NOMAD_TASK_NAME}"}
		t.Env = map[string]string{"NOMAD_OWN": "${NOMAD_META_shared}"}
	})
}

func wantedEnvironment() map[string]string {
	return map[string]string{
		"NOMAD_ALLOC_DIR": "ALLOC/alloc", "NOMAD_ALLOC_ID": "ALLOC", "NOMAD_ALLOC_INDEX": "0", "NOMAD_ALLOC_NAME": "env.g[0]", "NOMAD_CPU_CORES": " ", "NOMAD_CPU_LIMIT": "100",
		"NOMAD_DC": "dc1", "NOMAD_GROUP_NAME": "g", "NOMAD_JOB_ID": "env", "NOMAD_JOB_NAME": "env", "NOMAD_MEMORY_LIMIT": "64",
		"NOMAD_META_MIXED": "t", "NOMAD_META_Mixed": "t", "NOMAD_META_OF.JOB": "1", "NOMAD_META_SHARED": "task", "NOMAD_META_WITH_DASH": "2",
		"NOMAD_META_of.job": "1", "NOMAD_META_shared": "task", "NOMAD_META_with_dash": "2", "NOMAD_NAMESPACE": "default", "NOMAD_OWN": "task",
		"NOMAD_PARENT_CGROUP": "nomad.slice", "NOMAD_REGION": "global", "NOMAD_SECRETS_DIR": "ALLOC/t/secrets", "NOMAD_SHORT_ALLOC_ID": "8",
		"NOMAD_TASK_DIR": "ALLOC/t/local", "NOMAD_TASK_NAME": "t",
	}
}

func TestTheEnvironmentIsNomads(t *testing.T) {
	t.Parallel()
	j := environmentJob()
	id := "8a7f2c1e-0b1d-4c56-9c3e-1f2e3d4c5b6a"
	dir := filepath.Join(t.TempDir(), id)
	r := startHere(t, task.Spec{AllocID: id, Dir: dir, Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0]})
	if diff := cmp.Diff(wantedEnvironment(), environment(t, r)); diff != "" {
		t.Error(diff)
	}
}

func TestARealAgentGivesTheSameEnvironment(t *testing.T) {
	t.Parallel()
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	if diff := cmp.Diff(wantedEnvironment(), environment(t, runThere(t, a.Client(t), environmentJob()))); diff != "" {
		t.Error(diff)
	}
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := strings.LastIndexByte(string(text), ')')
	return text[i+2] != 'Z' && text[i+2] != 'X'
}

func TestNothingOfATaskOutlivesIt(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"its first process ended": "echo $$; setsid sh -c 'trap \"\" INT TERM; echo $$; while :; do sleep 0.1; done' & sleep 0.5; exit 0",
		"it was killed":           "trap 'exit 0' INT; setsid sh -c 'trap \"\" INT TERM; echo $$; while :; do sleep 0.1; done' & echo $$; while :; do sleep 0.1; done",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := runHere(t, job("leaves", script, nil))
			await(t, r, "two numbers", func(api.TaskState) bool { return strings.Count(r.stdout(), "\n") == 2 })
			for word := range strings.FieldsSeq(r.stdout()) {
				pid, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				if r.state().State == "running" && !slices.Contains(r.task.PIDs(), pid) && alive(pid) {
					t.Errorf("process %d is not among %v", pid, r.task.PIDs())
				}
			}
			if name == "it was killed" {
				r.kill()
			}
			<-r.task.Done()
			for word := range strings.FieldsSeq(r.stdout()) {
				if pid, err := strconv.Atoi(word); err != nil || alive(pid) {
					t.Errorf("process %s lives: %v", word, err)
				}
			}
			if left := groups(t, r.id); len(left) > 0 {
				t.Errorf("groups left: %v", left)
			}
		})
	}
}

func groups(t *testing.T, id string) []string {
	t.Helper()
	found, err := filepath.Glob("/sys/fs/cgroup/*/nomad/" + id + ".*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTheContextsEndIsTheMachines(t *testing.T) {
	t.Parallel()
	j := job("off", "trap '' INT TERM; echo $$; while :; do sleep 0.1; done", nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last api.TaskState
	dir := t.TempDir()
	started, err := task.Start(ctx, task.Spec{AllocID: "00000000-0000-4000-8000-00000000000f", Dir: dir, Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0]}, func(s api.TaskState) { last = s })
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	for pid == 0 {
		_, _ = fmt.Sscan(read(t, started.Logs("stdout", 0, false)), &pid)
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	<-started.Done()
	if alive(pid) {
		t.Error("the process lives")
	}
	if last.State != "running" || len(last.Events) != 3 {
		t.Errorf("the last that was heard: %+v", last)
	}
}

func TestAStickyDiskComesAlong(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	run := func(id, prev, script string) *here {
		j := job("sticky", script, func(_ *api.Job, g *api.TaskGroup, _ *api.Task) {
			g.EphemeralDisk = &api.EphemeralDisk{Sticky: new(true)}
		})
		return startHere(t, task.Spec{
			AllocID: id, Dir: filepath.Join(root, id), Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0],
			Alloc: &api.Allocation{ID: id, Name: "sticky.g[0]", PreviousAllocation: prev},
		})
	}
	first := run("00000000-0000-4000-8000-000000000001", "", "echo one >$NOMAD_ALLOC_DIR/data/a; echo two >$NOMAD_TASK_DIR/b; echo three >$NOMAD_ALLOC_DIR/c")
	await(t, first, "the first", isDead)
	<-first.task.Done()
	second := run("00000000-0000-4000-8000-000000000002", "00000000-0000-4000-8000-000000000001", "cat $NOMAD_ALLOC_DIR/data/a $NOMAD_TASK_DIR/b $NOMAD_ALLOC_DIR/c 2>&1 | sed s/.*No/No/")
	await(t, second, "the second", isDead)
	if got, want := second.stdout(), "one\ntwo\nNo such file or directory\n"; got != want {
		t.Errorf("found %q, want %q", got, want)
	}
}

func TestLogsAreReadFromAPlaceOnAndFollowed(t *testing.T) {
	t.Parallel()
	r := runHere(t, job("logs", "echo one; read x <$NOMAD_TASK_DIR/go; echo two; echo wrong >&2", func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
		args := t.Config["args"].([]string)
		args[1] = "mkfifo $NOMAD_TASK_DIR/go; " + args[1]
	}))
	await(t, r, "one", said(r, "one"))
	follow := r.task.Logs("stdout", 1, true)
	defer follow.Close()
	left := r.task.Logs("stdout", 0, true)
	ended := make(chan error, 1)
	go func() {
		_, err := io.ReadAll(left)
		ended <- err
	}()
	if err := left.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a reader that was closed came to the end")
	}
	if err := os.WriteFile(filepath.Join(r.dir, "t", "local", "go"), []byte("x\n"), 0); err != nil {
		t.Fatal(err)
	}
	if got := read(t, follow); got != "ne\ntwo\n" {
		t.Errorf("followed %q", got)
	}
	for offset, want := range map[int64]string{0: "one\ntwo\n", 4: "two\n", -2: "o\n", 100: "", -100: "one\ntwo\n"} {
		if got := read(t, r.task.Logs("stdout", offset, false)); got != want {
			t.Errorf("from %d: %q, want %q", offset, got, want)
		}
	}
	if got := read(t, r.task.Logs("stderr", 0, true)); got != "wrong\n" {
		t.Errorf("stderr %q", got)
	}
}

func TestMemoryBeyondTheLimitIsAKillWithoutTheWordOOM(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/sys/fs/cgroup/memory/memory.limit_in_bytes"); err != nil || os.Geteuid() != 0 {
		t.Skip("needs root and cgroups of version 1")
	}
	r := runHere(t, job("hungry", "exec tail /dev/zero", nil))
	got := await(t, r, "the end", isDead)
	want := []string{received, setup, started, "Terminated: Exit Code: 137, Signal: 9 (137, 9, false)", "Not Restarting: Policy allows no restarts"}
	if diff := cmp.Diff(want, events(got)); diff != "" {
		t.Error(diff)
	}
}

func TestReservedCoresAreTheAffinity(t *testing.T) {
	t.Parallel()
	j := job("cores", "grep Cpus_allowed_list /proc/self/status; echo $NOMAD_CPU_CORES", nil)
	r := startHere(t, task.Spec{
		AllocID: "00000000-0000-4000-8000-00000000000c", Dir: t.TempDir(), Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0],
		Env: map[string]string{"NOMAD_CPU_CORES": "0"},
	})
	await(t, r, "the end", isDead)
	if got := r.stdout(); got != "Cpus_allowed_list:\t0\n0\n" {
		t.Errorf("%q", got)
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*api.Job, *api.TaskGroup, *api.Task){
		"another driver": func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.Driver = "docker" },
		"artifacts": func(_ *api.Job, _ *api.TaskGroup, t *api.Task) {
			t.Artifacts = []*api.TaskArtifact{{GetterSource: new("http://127.0.0.1/x")}}
		},
	} {
		j := job("no", "true", change)
		_, err := task.Start(t.Context(), task.Spec{Dir: t.TempDir(), Job: j, Group: j.TaskGroups[0], Task: j.TaskGroups[0].Tasks[0]}, func(api.TaskState) {})
		if !errors.Is(err, task.ErrSpec) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheMockDriverPretends(t *testing.T) {
	t.Parallel()
	mock := func(config map[string]any) *here {
		return runHere(t, job("mock", "", func(_ *api.Job, _ *api.TaskGroup, t *api.Task) { t.Driver, t.Config = "mock_driver", config }))
	}
	if got := await(t, mock(map[string]any{"run_for": "10ms", "exit_code": 3}), "the end", isDead); !got.Failed || got.Events[3].ExitCode != 3 {
		t.Errorf("%+v", events(got))
	}
	long := mock(map[string]any{"run_for": "10h"})
	await(t, long, "its start", func(s api.TaskState) bool { return s.State == "running" })
	long.kill()
	if got := await(t, long, "the end", isDead); got.Failed {
		t.Errorf("%+v", events(got))
	}
}
