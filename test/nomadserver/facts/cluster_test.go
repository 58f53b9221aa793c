package facts_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
	"pitchpipe/test/sandbox"
)

const patience = 3 * time.Minute

// cluster is an agent of either kind, and the name of the fact's own job.
type cluster struct {
	*api.Client
	addr, id, token string
	real            bool
}

// fact is a sentence and its proof.
type fact struct {
	sentence string
	prove    func(t *testing.T, c cluster)
	by       agents
}

// agents are those that a fact is proven by.
type agents int

const (
	both agents = iota
	// No code here depends on the fact, and the server in this process does not know what
	// it is about.
	realAgent
)

// hold proves facts on both kinds of agent, each on one agent for all.
func hold(t *testing.T, o nomadagent.Options, facts []fact) {
	t.Helper()
	t.Run("in-process", func(t *testing.T) {
		t.Parallel()
		o := o
		o.Kind = nomadagent.InProcess
		proveAll(t, nomadagent.Start(t, o), facts)
	})
	t.Run("real agent", func(t *testing.T) {
		if testing.Short() {
			t.Skip("a real agent takes its time")
		}
		o := o
		o.Kind = nomadagent.Real
		proveAll(t, nomadagent.Start(t, o), facts)
	})
}

func proveAll(t *testing.T, a *nomadagent.Agent, facts []fact) {
	t.Helper()
	for _, f := range facts {
		if f.by == realAgent && !a.Real {
			continue
		}
		t.Run(f.sentence, func(t *testing.T) {
			client, err := a.Connect()
			if err != nil {
				t.Fatal(err)
			}
			c := cluster{Client: client, addr: a.Addr, token: a.Token, id: slug(f.sentence), real: a.Real}
			t.Cleanup(func() {
				// What a fact leaves running would take room from the next.
				jobs, _, err := c.Jobs().PrefixList(c.id)
				if err != nil {
					t.Error(err)
				}
				for _, j := range jobs {
					if _, _, err := c.Jobs().Deregister(j.ID, true, nil); err != nil {
						t.Error(err)
					}
				}
			})
			f.prove(t, c)
		})
	}
}

func slug(sentence string) string {
	s := regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(sentence), "-")
	return strings.Trim(s[:min(len(s), 60)], "-")
}

// job is a batch job of one group g with one task t that runs a script of /bin/sh.
func (c cluster) job(script string) *api.Job {
	j := api.NewBatchJob(c.id, c.id, "global", 50)
	task := api.NewTask("t", "raw_exec").SetConfig("command", "/bin/sh").SetConfig("args", []string{"-c", script})
	task.Resources = &api.Resources{CPU: new(50), MemoryMB: new(32)}
	task.RestartPolicy = &api.RestartPolicy{Attempts: new(0), Mode: new("fail")}
	g := api.NewTaskGroup("g", 1)
	g.ReschedulePolicy = &api.ReschedulePolicy{Attempts: new(0), Unlimited: new(false)}
	j.AddTaskGroup(g.AddTask(task))
	return j
}

// lasting runs until it is stopped.
const lasting = "trap 'exit 143' TERM INT; while :; do sleep 0.1; done"

func task(j *api.Job) *api.Task { return j.TaskGroups[0].Tasks[0] }

func (c cluster) register(t *testing.T, j *api.Job) *api.JobRegisterResponse {
	t.Helper()
	return c.registerWith(t, j, nil)
}

func (c cluster) registerWith(t *testing.T, j *api.Job, o *api.RegisterOptions) *api.JobRegisterResponse {
	t.Helper()
	out, _, err := c.Jobs().RegisterOpts(j, o, nil)
	if err != nil {
		t.Fatalf("registering: %v", err)
	}
	return out
}

func (c cluster) read(t *testing.T) *api.Job {
	t.Helper()
	j, _, err := c.Jobs().Info(c.id, nil)
	if err != nil {
		t.Fatalf("reading the job: %v", err)
	}
	return j
}

// allocs lists those of the job, oldest first.
func (c cluster) allocs(t *testing.T) []*api.AllocationListStub {
	t.Helper()
	list, _, err := c.Jobs().Allocations(c.id, true, nil)
	if err != nil {
		t.Fatalf("listing allocations: %v", err)
	}
	for i, k := 0, len(list)-1; i < k; i, k = i+1, k-1 {
		list[i], list[k] = list[k], list[i]
	}
	return list
}

// await asks until the error is gone; the last one shows where patience ends.
func await(t *testing.T, what string, ask func() error) {
	t.Helper()
	sandbox.Await(t, patience, what, ask)
}

// awaitAllocs waits until as many allocations as given have these client statuses,
// oldest first.
func (c cluster) awaitAllocs(t *testing.T, want ...string) []*api.AllocationListStub {
	t.Helper()
	var list []*api.AllocationListStub
	await(t, "the allocations", func() error {
		list = c.allocs(t)
		var have []string
		for _, a := range list {
			have = append(have, a.ClientStatus)
		}
		if strings.Join(have, " ") != strings.Join(want, " ") {
			return fmt.Errorf("they are %v, want %v", have, want)
		}
		return nil
	})
	return list
}

// runs registers a job and waits until its one allocation runs.
func (c cluster) runs(t *testing.T, j *api.Job) *api.AllocationListStub {
	t.Helper()
	c.register(t, j)
	return c.awaitAllocs(t, "running")[0]
}

func (c cluster) awaitStatus(t *testing.T, status string) *api.Job {
	t.Helper()
	var j *api.Job
	await(t, "the job's status", func() error {
		j = c.read(t)
		if *j.Status != status {
			return fmt.Errorf("it is %s, want %s", *j.Status, status)
		}
		return nil
	})
	return j
}

// awaitEval waits until an evaluation is over or blocked.
func (c cluster) awaitEval(t *testing.T, id string) *api.Evaluation {
	t.Helper()
	var e *api.Evaluation
	await(t, "the evaluation", func() error {
		var err error
		if e, _, err = c.Evaluations().Info(id, nil); err != nil {
			return err
		}
		if e.Status == api.EvalStatusPending {
			return errors.New("it is pending")
		}
		return nil
	})
	return e
}

// refused checks an error of the API.
func refused(t *testing.T, err error, code int, text string) {
	t.Helper()
	var r api.UnexpectedResponseError
	switch {
	case err == nil:
		t.Fatalf("it was taken, want %d %q", code, text)
	case !errors.As(err, &r):
		t.Fatalf("it failed with %v, want a response", err)
	case r.StatusCode() != code || !strings.Contains(r.Body(), text):
		t.Errorf("it is %d %q, want %d with %q", r.StatusCode(), r.Body(), code, text)
	}
}

// get asks for a path as it is.
func (c cluster) get(t *testing.T, path string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.addr+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Nomad-Token", c.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}
