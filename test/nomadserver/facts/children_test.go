package facts_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestChildrenAndAllocations(t *testing.T) {
	hold(t, nomadagent.Options{}, []fact{
		{"a dispatched child cannot be changed", dispatchedIsFixed, both},
		{"a dispatch with the same idempotency token is the same child", sameToken, both},
		{"a dispatch checks its meta and its parent", dispatchRefused, both},
		{"registering a parameterized parent makes no evaluation and running children keep their specification", parentChange, both},
		{"a forced child of a periodic job can be registered again", periodicChild, both},
		{"a periodic or parameterized job stays one", kindStays, both},
		{"stopping an allocation makes another that names it", stopAllocation, both},
		{"restarting an allocation keeps it and its specification", restartAllocation, both},
		{"a signal reaches the task, and none a task that has ended", signalTask, both},
		{"a failed task fails its allocation with its exit code", failedTask, both},
		{"a failed allocation is rescheduled as its policy says", rescheduled, both},
		{"a purged job is gone, and its successor begins at version 0", purged, both},
		{"stopping a job ends its allocations and keeps the job", stopped, both},
		{"stopping what does not exist is taken", stopNothing, both},
		{"evaluating a finished job runs nothing again", evaluateFinished, realAgent},
	})
}

func (c cluster) parameterized() *api.Job {
	j := c.job(lasting)
	j.ParameterizedJob = &api.ParameterizedJobConfig{Payload: "optional", MetaRequired: []string{"seed"}}
	return j
}

func (c cluster) dispatch(t *testing.T, token string) *api.JobDispatchResponse {
	t.Helper()
	out := must[*api.JobDispatchResponse](t)(c.Jobs().Dispatch(c.id, map[string]string{"seed": "1"}, nil, "", &api.WriteOptions{IdempotencyToken: token}))
	return out
}

func (c cluster) child(id string) cluster {
	c.id = id
	return c
}

func dispatchedIsFixed(t *testing.T, c cluster) {
	c.register(t, c.parameterized())
	d := c.dispatch(t, "")
	child := c.child(d.DispatchedJobID)
	j := child.read(t)
	if !j.Dispatched || *j.ParentID != c.id || j.Meta["seed"] != "1" || !strings.HasPrefix(*j.ID, c.id+"/dispatch-") {
		t.Errorf("%s: dispatched %t, parent %s, meta %v", *j.ID, j.Dispatched, *j.ParentID, j.Meta)
	}
	child.awaitAllocs(t, "running")
	j.Priority = new(60)
	_, _, err := c.Jobs().Register(j, nil)
	if err == nil {
		t.Error("as it was read back it was taken")
	}
	j.Dispatched = false
	_, _, err = c.Jobs().Register(j, nil)
	refused(t, err, 500, "cannot update non-parameterized job to being parameterized")
	j.ParameterizedJob = nil
	_, _, err = c.Jobs().Register(j, nil)
	refused(t, err, 500, "field 'Dispatched' is read-only")
}

func sameToken(t *testing.T, c cluster) {
	c.register(t, c.parameterized())
	first, second, third := c.dispatch(t, "abc"), c.dispatch(t, "abc"), c.dispatch(t, "xyz")
	if first.DispatchedJobID != second.DispatchedJobID || first.EvalID == "" || second.EvalID != "" {
		t.Errorf("%s %q, then %s %q", first.DispatchedJobID, first.EvalID, second.DispatchedJobID, second.EvalID)
	}
	if third.DispatchedJobID == first.DispatchedJobID {
		t.Error("another token is the same child")
	}
}

func dispatchRefused(t *testing.T, c cluster) {
	c.register(t, c.parameterized())
	_, _, err := c.Jobs().Dispatch(c.id, nil, nil, "", nil)
	refused(t, err, 500, "Dispatch did not provide required meta keys: [seed]")
	_, _, err = c.Jobs().Dispatch(c.id, map[string]string{"seed": "1", "x": "2"}, nil, "", nil)
	refused(t, err, 500, "Dispatch request included unpermitted metadata keys: [x]")
	_, _, err = c.Jobs().Dispatch(c.id+"-no", nil, nil, "", nil)
	refused(t, err, 500, "parameterized job not found")
	o := c.other(t, "plain")
	o.register(t, o.job("true"))
	_, _, err = c.Jobs().Dispatch(o.id, nil, nil, "", nil)
	refused(t, err, 500, "is not a parameterized job")
}

func parentChange(t *testing.T, c cluster) {
	parent := c.parameterized()
	if reg := c.register(t, parent); reg.EvalID != "" {
		t.Errorf("evaluation %q", reg.EvalID)
	}
	if now := c.read(t); *now.Status != "running" {
		t.Errorf("the parent is %s", *now.Status)
	}
	d := c.dispatch(t, "")
	child := c.child(d.DispatchedJobID)
	child.awaitAllocs(t, "running")
	task(parent).Env = map[string]string{"A": "1"}
	c.register(t, parent)
	if env := task(child.read(t)).Env; len(env) != 0 {
		t.Errorf("the child has %v", env)
	}
	if n := len(child.allocs(t)); n != 1 {
		t.Errorf("there are %d allocations", n)
	}
	if got := task(c.child(c.dispatch(t, "").DispatchedJobID).read(t)).Env["A"]; got != "1" {
		t.Errorf("the next child has %q", got)
	}
	s := must[*api.JobSummary](t)(c.Jobs().Summary(c.id, nil))
	if s.Children == nil || s.Children.Sum() != 2 {
		t.Errorf("the children are %+v", s.Children)
	}
}

func (c cluster) periodic() *api.Job {
	j := c.job(lasting)
	j.Periodic = &api.PeriodicConfig{Spec: new("0 0 1 1 *")}
	return j
}

func periodicChild(t *testing.T, c cluster) {
	if reg := c.register(t, c.periodic()); reg.EvalID != "" {
		t.Errorf("evaluation %q", reg.EvalID)
	}
	eval := must[string](t)(c.Jobs().PeriodicForce(c.id, nil))
	child := c.child(c.awaitEval(t, eval).JobID)
	j := child.read(t)
	if *j.ParentID != c.id || j.Periodic != nil || !strings.HasPrefix(*j.ID, c.id+"/periodic-") {
		t.Errorf("%s: parent %s, periodic %v", *j.ID, *j.ParentID, j.Periodic)
	}
	child.awaitAllocs(t, "running")
	task(j).Env = map[string]string{"A": "1"}
	child.register(t, j)
	child.awaitAllocs(t, "complete", "running")
	// Slashes of the name are escaped in paths.
	resp := c.get(t, "/v1/job/"+url.PathEscape(child.id))
	if resp.StatusCode != 200 {
		t.Errorf("the escaped name is %d", resp.StatusCode)
	}
}

func kindStays(t *testing.T, c cluster) {
	c.register(t, c.periodic())
	_, _, err := c.Jobs().Register(c.job("true"), nil)
	refused(t, err, 500, "cannot update periodic job to being non-periodic")
	o := c.other(t, "param")
	o.register(t, o.parameterized())
	_, _, err = o.Jobs().Register(o.job("true"), nil)
	refused(t, err, 500, "cannot update parameterized job to being non-parameterized")
	p := c.other(t, "plain")
	p.register(t, p.job("true"))
	_, _, err = p.Jobs().Register(p.periodic(), nil)
	refused(t, err, 500, "cannot update non-periodic job to being periodic")
}

func (c cluster) alloc(t *testing.T, id string) *api.Allocation {
	t.Helper()
	a := must[*api.Allocation](t)(c.Allocations().Info(id, nil))
	return a
}

func stopAllocation(t *testing.T, c cluster) {
	first := c.runs(t, c.job(lasting))
	if _, err := c.Allocations().Stop(c.alloc(t, first.ID), nil); err != nil {
		t.Fatal(err)
	}
	list := c.awaitAllocs(t, "complete", "running")
	if list[0].DesiredStatus != "stop" || c.alloc(t, list[1].ID).PreviousAllocation != first.ID || list[1].JobVersion != 0 {
		t.Errorf("desired %s, previous %s", list[0].DesiredStatus, c.alloc(t, list[1].ID).PreviousAllocation)
	}
}

func restartAllocation(t *testing.T, c cluster) {
	first := c.runs(t, c.job("trap 'exit 143' TERM INT; echo run; while :; do sleep 0.1; done"))
	c.output(t, first.ID, "run\n")
	if err := c.Allocations().Restart(c.alloc(t, first.ID), "", nil); err != nil {
		t.Fatal(err)
	}
	c.output(t, first.ID, "run\nrun\n")
	await(t, "the restart to be counted", func() error {
		if n := c.alloc(t, first.ID).TaskStates["t"].Restarts; n != 1 {
			return fmt.Errorf("there are %d", n)
		}
		return nil
	})
	if list := c.allocs(t); len(list) != 1 {
		t.Errorf("there are %d allocations", len(list))
	}
}

func signalTask(t *testing.T, c cluster) {
	first := c.runs(t, c.job("trap 'echo usr1; exit 0' USR1; echo ready; while :; do sleep 0.1; done"))
	c.output(t, first.ID, "ready\n")
	if err := c.Allocations().Signal(c.alloc(t, first.ID), nil, "t", "SIGUSR1"); err != nil {
		t.Fatal(err)
	}
	c.output(t, first.ID, "ready\nusr1\n")
	c.awaitAllocs(t, "complete")
	err := c.Allocations().Signal(c.alloc(t, first.ID), nil, "t", "SIGUSR1")
	refused(t, err, 500, "Task not running")
	err = c.Allocations().Signal(c.alloc(t, first.ID), nil, "other", "SIGUSR1")
	refused(t, err, 500, "")
}

func failedTask(t *testing.T, c cluster) {
	c.register(t, c.job("exit 3"))
	a := c.awaitAllocs(t, "failed")[0]
	st := a.TaskStates["t"]
	if st.State != "dead" || !st.Failed || exitCode(st) != 3 || a.DesiredStatus != "run" {
		t.Errorf("%s, failed %t, exit code %d, desired %s", st.State, st.Failed, exitCode(st), a.DesiredStatus)
	}
	c.awaitStatus(t, "dead")
}

func rescheduled(t *testing.T, c cluster) {
	j := c.job("exit 3")
	j.TaskGroups[0].ReschedulePolicy = &api.ReschedulePolicy{
		Attempts: new(1), Interval: new(time.Hour), Delay: new(5 * time.Second), DelayFunction: new("constant"), Unlimited: new(false),
	}
	c.register(t, j)
	list := c.awaitAllocs(t, "failed", "failed")
	second := c.alloc(t, list[1].ID)
	if second.PreviousAllocation != list[0].ID || second.RescheduleTracker == nil || len(second.RescheduleTracker.Events) != 1 {
		t.Errorf("previous %q, tracker %+v", second.PreviousAllocation, second.RescheduleTracker)
	}
	if list[0].DesiredStatus != "stop" || list[0].NextAllocation != list[1].ID {
		t.Errorf("the first is desired=%s, next %q", list[0].DesiredStatus, list[0].NextAllocation)
	}
	c.awaitStatus(t, "dead")
}

func purged(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	c.awaitAllocs(t, "complete")
	j.Priority = new(60)
	c.register(t, j)
	c.awaitAllocs(t, "complete", "complete")
	done(t)(c.Jobs().Deregister(c.id, true, nil))
	_, _, err := c.Jobs().Info(c.id, nil)
	refused(t, err, 404, "job not found")
	c.register(t, j)
	await(t, "the successor to finish", func() error {
		now := c.read(t)
		if *now.Version != 0 || *now.Status != "dead" {
			return fmt.Errorf("version %d is %s", *now.Version, *now.Status)
		}
		return nil
	})
	list := must[[]*api.AllocationListStub](t)(c.Jobs().Allocations(c.id, false, nil))
	if len(list) != 1 || list[0].ClientStatus != "complete" {
		t.Errorf("of the successor there are %d allocations", len(list))
	}
}

func stopped(t *testing.T, c cluster) {
	c.runs(t, c.job(lasting))
	done(t)(c.Jobs().Deregister(c.id, false, nil))
	list := c.awaitAllocs(t, "complete")
	if list[0].DesiredStatus != "stop" || list[0].DesiredDescription != "alloc not needed due to job update" {
		t.Errorf("%s since %q", list[0].DesiredStatus, list[0].DesiredDescription)
	}
	if now := c.awaitStatus(t, "dead"); !*now.Stop {
		t.Error("the job is not stopped")
	}
}

func stopNothing(t *testing.T, c cluster) {
	eval, _, err := c.Jobs().Deregister(c.id, false, nil)
	if err != nil || eval != "" {
		t.Errorf("%q, %v", eval, err)
	}
}

func evaluateFinished(t *testing.T, c cluster) {
	c.register(t, c.job("true"))
	c.awaitAllocs(t, "complete")
	eval := must[string](t)(c.Jobs().ForceEvaluate(c.id, nil))
	c.awaitEval(t, eval)
	c.awaitAllocs(t, "complete")
}
