package nomadserver

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/filter"
	"pitchpipe/test/nomadserver/state"
)

func allocStub(a *api.Allocation) *api.AllocationListStub {
	out := a.Stub()
	if out.TaskStates == nil {
		out.TaskStates = map[string]*api.TaskState{}
	}
	return out
}

func listAllocs(c *call) error {
	keep, err := filter.Parse(c.query("filter"))
	if err != nil {
		return refuse(http.StatusBadRequest, "failed to read filter expression: %v", err)
	}
	ns, prefix, resources := c.namespace(), c.query("prefix"), c.truth("resources")
	if ns != "*" {
		if err := c.need("read-job"); err != nil {
			return err
		}
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.AllocationListStub{}
		for _, a := range t.Allocs(ns) {
			if !strings.HasPrefix(a.ID, prefix) || !c.may(a.Namespace, "read-job") {
				continue
			}
			s := allocStub(a)
			if ok, err := keep.Match(s); err != nil {
				return nil, 0, refuse(http.StatusBadRequest, "%v", err)
			} else if !ok {
				continue
			}
			if resources {
				s.AllocatedResources = a.AllocatedResources
			}
			out = append(out, s)
		}
		return out, t.Touched(state.Allocs), nil
	}, state.Allocs)
}

func readAlloc(c *call) error {
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		if len(c.name) != 36 {
			return nil, 0, fmt.Errorf("alloc lookup failed: index error: UUID must be 36 characters")
		}
		a := t.Alloc(c.name)
		if a == nil || !c.may(a.Namespace, "read-job") {
			return nil, 0, refuse(http.StatusNotFound, "alloc not found")
		}
		return a, a.ModifyIndex, nil
	}, state.Key(state.Allocs, "id", c.name))
}

// stopAlloc ends one allocation; the job still wants it, so another takes its place.
func stopAlloc(c *call) error {
	var out struct {
		EvalID string
		Index  uint64
	}
	index, err := c.s.store.Write("AllocationUpdateDesiredStatus", func(tx *state.Tx) error {
		old := tx.Alloc(c.name)
		if old == nil {
			return refuse(http.StatusNotFound, "allocation not found")
		}
		if !c.may(old.Namespace, "alloc-lifecycle") {
			return denied()
		}
		job := tx.Job(state.ID{Namespace: old.Namespace, Job: old.JobID})
		if job == nil {
			job = old.Job
		}
		a := *old
		a.DesiredTransition.Migrate = new(true)
		tx.PutAlloc(&a, false)
		e := newEval(job, "alloc-stop")
		tx.PutEval(e)
		out.EvalID = e.ID
		return nil
	})
	if err != nil {
		return err
	}
	out.Index = index
	return c.reply(out, index)
}

// running finds the runner of an allocation that the caller may touch by one of the
// capabilities.
func (c *call) running(capabilities ...string) (*api.Allocation, *run, error) {
	var a *api.Allocation
	c.s.store.Read(func(t *state.Tables) { a = t.Alloc(c.name) })
	if a == nil {
		return nil, nil, refuse(http.StatusNotFound, "Unknown allocation %q", c.name)
	}
	if !c.may(a.Namespace, capabilities...) {
		return nil, nil, denied()
	}
	r := c.s.node.run(a.ID)
	if r == nil {
		return nil, nil, refuse(http.StatusNotFound, "Unknown allocation %q", c.name)
	}
	return a, r, nil
}

func restartAlloc(c *call) error {
	a, r, err := c.running("alloc-lifecycle")
	if err != nil {
		return err
	}
	var req api.AllocationRestartRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if state.AllocEnded(a) {
		return errors.New("restart of an alloc that should not run")
	}
	tasks, err := r.named(req.TaskName)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := t.Restart(); err != nil {
			return err
		}
	}
	return c.reply(struct{}{}, 0)
}

func signalAlloc(c *call) error {
	_, r, err := c.running("alloc-lifecycle")
	if err != nil {
		return err
	}
	var req api.AllocSignalRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	tasks, err := r.named(req.Task)
	if err != nil {
		return err
	}
	for _, t := range tasks {
		if err := t.Signal(req.Signal); err != nil {
			return err
		}
	}
	return c.reply(struct{}{}, 0)
}

// named are the tasks of that name, all for "".
func (r *run) named(name string) (map[string]Task, error) {
	if name == "" {
		all := r.all()
		if len(all) == 0 {
			return nil, refuse(http.StatusInternalServerError, "Task not running")
		}
		return all, nil
	}
	t := r.task(name)
	if t == nil {
		return nil, refuse(http.StatusInternalServerError, "Could not find task runner for task: %s", name)
	}
	return map[string]Task{name: t}, nil
}
