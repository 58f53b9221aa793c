package nomadagent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	sandbox.Await(t, 3*time.Minute, what, ask)
}

// submit registers a batch job of one shell script.
func submit(t *testing.T, c *api.Client, id, script string) {
	t.Helper()
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", script})
	task.Require(&api.Resources{MemoryMB: new(32), CPU: new(50)})
	group := api.NewTaskGroup("g", 1).AddTask(task)
	group.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	job := api.NewBatchJob(id, id, "global", 50).AddTaskGroup(group)
	if _, _, err := c.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
}

//go:fix inline

// allocation waits until the job has one in the wanted state.
func allocation(t *testing.T, c *api.Client, id, status string) *api.AllocationListStub {
	t.Helper()
	var out *api.AllocationListStub
	await(t, "an allocation of "+id, func() error {
		list, _, err := c.Jobs().Allocations(id, true, nil)
		if err != nil {
			return err
		}
		if len(list) != 1 || list[0].ClientStatus != status {
			return fmt.Errorf("%d allocations, want one that is %s", len(list), status)
		}
		out = list[0]
		return nil
	})
	return out
}

func alive(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}

// pid reads the number that a job wrote.
func pid(t *testing.T, path string) int {
	t.Helper()
	n := 0
	await(t, path, func() (err error) {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n, err = strconv.Atoi(strings.TrimSpace(string(text)))
		return err
	})
	return n
}

func TestAJobRunsAndItsTaskSurvivesARestart(t *testing.T) {
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, a *nomadagent.Agent) {
		c := a.Client(t)
		at := filepath.Join(t.TempDir(), "pid")
		submit(t, c, "sleeper", "echo $$ >"+at+"; exec sleep 600")
		before := allocation(t, c, "sleeper", "running")
		id := pid(t, at)
		addr := a.Addr
		if err := errors.Join(a.Kill(t.Context()), a.Revive(t.Context())); err != nil {
			t.Fatal(err)
		}
		if a.Addr != addr {
			t.Errorf("the address is %s now and was %s", a.Addr, addr)
		}
		if after := allocation(t, c, "sleeper", "running"); after.ID != before.ID {
			t.Errorf("another allocation: %s, was %s", after.ID, before.ID)
		}
		if !alive(id) {
			t.Error("the task did not survive")
		}
		if _, _, err := c.Jobs().Deregister("sleeper", false, nil); err != nil {
			t.Fatal(err)
		}
		allocation(t, c, "sleeper", "complete")
		await(t, "the task's end", func() error {
			if alive(id) {
				return errors.New("it lives")
			}
			return nil
		})
	})
}

func TestStopLeavesNothingOfAgentAndJobs(t *testing.T) {
	for name, kind := range map[string]nomadagent.Kind{"in-process": nomadagent.InProcess, "real agent": nomadagent.Real} {
		t.Run(name, func(t *testing.T) {
			a, err := nomadagent.Launch(t.Context(), nomadagent.Options{Kind: kind})
			if errors.Is(err, nomadagent.ErrUnavailable) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			stopped := false
			defer func() {
				if !stopped {
					_ = a.Stop(context.WithoutCancel(t.Context()))
				}
			}()
			c := a.Client(t)
			dir := t.TempDir()
			// Its own session, no signal heard: only the marker or the cgroup finds it.
			submit(t, c, "stubborn", "echo $$ >"+dir+"/a; setsid sh -c 'trap \"\" INT TERM HUP; echo $$ >"+dir+"/b; while :; do sleep 1; done' & exec sleep 600")
			ids := []int{pid(t, dir+"/a"), pid(t, dir+"/b")}
			stopped = true
			if err := a.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, id := range ids {
				await(t, "the end of process "+strconv.Itoa(id), func() error {
					if alive(id) {
						return errors.New("it lives")
					}
					return nil
				})
			}
			if _, err := c.Agent().NodeName(); err == nil {
				t.Error("somebody still answers")
			}
		})
	}
}

func TestWithACLsTheTokenIsNeeded(t *testing.T) {
	nomadagent.Both(t, nomadagent.Options{ACL: true}, func(t *testing.T, a *nomadagent.Agent) {
		if a.Token == "" {
			t.Fatal("no token")
		}
		if _, _, err := a.Client(t).Jobs().List(nil); err != nil {
			t.Error(err)
		}
		stranger, err := api.NewClient(&api.Config{Address: a.Addr})
		if err != nil {
			t.Fatal(err)
		}
		defer stranger.Close()
		if _, _, err := stranger.Jobs().Info("x", nil); err == nil || !strings.Contains(err.Error(), "Permission denied") {
			t.Errorf("without a token: %v", err)
		}
	})
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

func TestTheNodeHasWhatTheOptionsSay(t *testing.T) {
	nomadagent.Both(t, nomadagent.Options{Cores: 1, MemoryMB: 600, Oversubscribe: true}, func(t *testing.T, a *nomadagent.Agent) {
		c := a.Client(t)
		nodes, _, err := c.Nodes().List(nil)
		if err != nil || len(nodes) != 1 {
			t.Fatal(nodes, err)
		}
		status, text, err := a.Do(t.Context(), "GET", "/v1/node/"+nodes[0].ID, "")
		if err != nil || status != 200 {
			t.Fatal(status, err)
		}
		var node struct {
			NodeResources map[string]any
		}
		if err := json.Unmarshal([]byte(text), &node); err != nil {
			t.Fatal(err)
		}
		if cpu, _ := node.NodeResources["Cpu"].(map[string]any); len(list(cpu["ReservableCpuCores"])) != 1 {
			t.Errorf("cores %v", cpu)
		}
		if got, _ := node.NodeResources["Memory"].(map[string]any); got["MemoryMB"] != 600.0 {
			t.Errorf("%v MB", got)
		}
		job := api.NewBatchJob("more", "more", "global", 50)
		task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/true")
		task.Resources = &api.Resources{CPU: new(50), MemoryMB: new(32), MemoryMaxMB: new(64)}
		said, _, err := c.Jobs().Validate(job.AddTaskGroup(api.NewTaskGroup("g", 1).AddTask(task)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if said.Warnings != "" || said.Error != "" {
			t.Errorf("memory_max does not count: %s%s", said.Warnings, said.Error)
		}
	})
}

func TestNothingListensBeyondLoopback(t *testing.T) {
	a := nomadagent.Start(t, nomadagent.Options{Kind: nomadagent.Real})
	_, port, _ := strings.Cut(strings.TrimPrefix(a.Addr, "http://"), ":")
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("0100007F:%04X", n); !strings.Contains(string(text), want) {
		t.Errorf("nothing listens on %s", want)
	}
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, fmt.Sprintf("00000000:%04X 00000000:0000 0A", n)) {
			t.Errorf("listens everywhere: %s", line)
		}
	}
}

func TestImpossibleOptionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, o := range []nomadagent.Options{{Cores: -1}, {MemoryMB: -1}, {EventBuffer: -1}} {
		if _, err := nomadagent.Launch(t.Context(), o); !errors.Is(err, nomadagent.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if err := nomadagent.Available(); err != nil {
		return
	}
	if _, err := nomadagent.Launch(t.Context(), nomadagent.Options{Kind: nomadagent.Real, Cores: 10000}); !errors.Is(err, nomadagent.ErrUnavailable) {
		t.Errorf("more cores than the machine: %v", err)
	}
}
