package nomadserver

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
	"pitchpipe/test/nomadserver/task"
)

func listAllocs(c *call, t *cluster.Tables) (any, uint64, error) {
	out := []*api.AllocationListStub{}
	for _, a := range t.Allocs(c.namespace()) {
		if !c.may(a.Namespace, "read-job") {
			continue
		}
		s := a.Stub()
		if c.truth("resources") {
			s.AllocatedResources = a.AllocatedResources
		}
		out = append(out, s)
	}
	return out, t.Touched(cluster.Allocs), nil
}

func readAlloc(c *call, t *cluster.Tables) (any, uint64, error) {
	if len(c.name) != 36 {
		return nil, 0, fmt.Errorf("alloc lookup failed: index error: UUID must be 36 characters")
	}
	a := t.Alloc(c.name)
	if a == nil || !c.may(a.Namespace, "read-job") {
		return nil, 0, refuse(http.StatusNotFound, "alloc not found")
	}
	return a, a.ModifyIndex, nil
}

// stopAlloc ends one allocation; the job still wants it, so another takes its place.
func stopAlloc(c *call) error {
	var out struct{ EvalID string }
	return c.change(&out, func(tx *cluster.Tx) error {
		old := tx.Alloc(c.name)
		if old == nil {
			return refuse(http.StatusNotFound, "allocation not found")
		}
		if !c.may(old.Namespace, "alloc-lifecycle") {
			return denied()
		}
		job := tx.Job(cluster.ID{Namespace: old.Namespace, Job: old.JobID})
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
}

// running finds the runner of an allocation, for a caller with one of the rights.
func (c *call) running(rights string) (*api.Allocation, *run, error) {
	var a *api.Allocation
	c.s.store.Read(func(t *cluster.Tables) { a = t.Alloc(c.name) })
	if a == nil {
		return nil, nil, refuse(http.StatusNotFound, "Unknown allocation %q", c.name)
	}
	if !c.may(a.Namespace, rights) {
		return nil, nil, denied()
	}
	r := c.s.node.run(a.ID)
	if r == nil {
		return nil, nil, refuse(http.StatusNotFound, "Unknown allocation %q", c.name)
	}
	return a, r, nil
}

func restartAlloc(c *call, req api.AllocationRestartRequest) error {
	a, r, err := c.running("alloc-lifecycle")
	if err != nil {
		return err
	}
	if cluster.AllocEnded(a) {
		return errors.New("restart of an alloc that should not run")
	}
	return c.each(r, req.TaskName, (*task.Task).Restart)
}

func signalAlloc(c *call, req api.AllocSignalRequest) error {
	_, r, err := c.running("alloc-lifecycle")
	if err != nil {
		return err
	}
	return c.each(r, req.Task, func(t *task.Task) error { return t.Signal(req.Signal) })
}

// each does something to the task of that name; "" means all.
func (c *call) each(r *run, name string, do func(*task.Task) error) error {
	found := false
	for task, t := range r.all() {
		if name != "" && name != task {
			continue
		}
		found = true
		if err := do(t); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("Could not find task runner for task: %s", name) //nolint:staticcheck // Nomad's text
	}
	return c.reply(struct{}{}, 0)
}
