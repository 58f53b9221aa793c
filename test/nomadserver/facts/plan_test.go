package facts_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadagent"
)

func TestPlanning(t *testing.T) {
	hold(t, nomadagent.Options{Cores: 2, MemoryMB: 1024}, []fact{
		{"a plan of a new job places it and changes nothing", planNew, both},
		{"a plan of a change says destructive or in place and the index to enforce", planChange, both},
		{"a plan of a change says on demand what differs", planDifference, realAgent},
		{"a plan of what is registered ignores", planSame, both},
		{"a plan of a finished batch job places it again", planFinished, both},
		{"a plan that finds no room names the dimension and a blocked evaluation", planNoRoom, both},
		{"a change that finds no room leaves the old allocation running and replaces it once there is room", roomLater, both},
		{"the old specification again undoes a change that found no room", undo, both},
		{"a job that finds no room waits in a blocked evaluation and starts when another has ended", waitForRoom, both},
		{"stopping a job that waits for room ends its blocked evaluation", stopWaiting, both},
	})
}

func (c cluster) plan(t *testing.T, j *api.Job) *api.JobPlanResponse {
	t.Helper()
	out, _, err := c.Jobs().Plan(j, c.real, nil)
	if err != nil {
		t.Fatalf("planning: %v", err)
	}
	return out
}

func planNew(t *testing.T, c cluster) {
	p := c.plan(t, c.job("true"))
	if d := p.Annotations.DesiredTGUpdates["g"]; d.Place != 1 || p.JobModifyIndex != 0 || len(p.FailedTGAllocs) != 0 {
		t.Errorf("%+v, index %d, failed %v", *d, p.JobModifyIndex, p.FailedTGAllocs)
	}
	_, _, err := c.Jobs().Info(c.id, nil)
	refused(t, err, 404, "job not found")
}

func planChange(t *testing.T, c cluster) {
	j := c.job(lasting)
	reg := c.register(t, j)
	c.awaitAllocs(t, "running")
	task(j).Resources.MemoryMB = new(40)
	task(j).Env = map[string]string{"OMP_NUM_THREADS": "2"}
	p := c.plan(t, j)
	if d := p.Annotations.DesiredTGUpdates["g"]; d.DestructiveUpdate != 1 || d.Place != 0 || p.JobModifyIndex != reg.JobModifyIndex {
		t.Errorf("%+v, index %d, want %d", *d, p.JobModifyIndex, reg.JobModifyIndex)
	}
	j = c.job(lasting)
	j.Priority = new(90)
	p = c.plan(t, j)
	if d := p.Annotations.DesiredTGUpdates["g"]; d.InPlaceUpdate != 1 || d.DestructiveUpdate != 0 {
		t.Errorf("a priority is planned as %+v", *d)
	}
	if *c.read(t).Version != 0 || len(c.allocs(t)) != 1 {
		t.Error("the plan changed something")
	}
}

func planDifference(t *testing.T, c cluster) {
	if p := c.plan(t, c.job(lasting)); p.Diff.Type != "Added" {
		t.Errorf("a new job differs as %s", p.Diff.Type)
	}
	j := c.job(lasting)
	c.runs(t, j)
	if p := c.plan(t, j); p.Diff.Type != "None" {
		t.Errorf("the same job differs as %s", p.Diff.Type)
	}
	task(j).Resources.MemoryMB = new(40)
	task(j).Env = map[string]string{"OMP_NUM_THREADS": "2"}
	p := c.plan(t, j)
	if p.Diff.Type != "Edited" || len(p.Diff.TaskGroups) != 1 || len(p.Diff.TaskGroups[0].Tasks) != 1 {
		t.Fatalf("the difference is %+v", p.Diff)
	}
	g := p.Diff.TaskGroups[0]
	if g.Updates["create/destroy update"] != 1 {
		t.Errorf("the group's updates are %v", g.Updates)
	}
	d := g.Tasks[0]
	if !slices.Contains(d.Annotations, "forces create/destroy update") {
		t.Errorf("the task's remarks are %v", d.Annotations)
	}
	if !slices.ContainsFunc(d.Fields, func(f *api.FieldDiff) bool {
		return f.Name == "Env[OMP_NUM_THREADS]" && f.Type == "Added" && f.New == "2"
	}) {
		t.Errorf("the variable is not among the fields: %v", named(d.Fields))
	}
	if !slices.ContainsFunc(d.Objects, func(o *api.ObjectDiff) bool {
		return o.Name == "Resources" && slices.ContainsFunc(o.Fields, func(f *api.FieldDiff) bool {
			return f.Name == "MemoryMB" && f.Old == "32" && f.New == "40" && f.Type == "Edited"
		})
	}) {
		t.Error("the memory is not among the objects")
	}
}

func named(fields []*api.FieldDiff) []string {
	var out []string
	for _, f := range fields {
		out = append(out, f.Name)
	}
	return out
}

func planSame(t *testing.T, c cluster) {
	j := c.job(lasting)
	c.runs(t, j)
	p := c.plan(t, j)
	if d := p.Annotations.DesiredTGUpdates["g"]; *d != (api.DesiredUpdates{Ignore: 1}) {
		t.Errorf("%+v", *d)
	}
}

func planFinished(t *testing.T, c cluster) {
	j := c.job("true")
	c.register(t, j)
	c.awaitAllocs(t, "complete")
	j.Priority = new(60)
	if d := c.plan(t, j).Annotations.DesiredTGUpdates["g"]; d.Place != 1 {
		t.Errorf("a changed one is planned as %+v", *d)
	}
	if d := c.plan(t, c.job("true")).Annotations.DesiredTGUpdates["g"]; d.Place != 0 || d.Ignore != 1 {
		t.Errorf("the same one is planned as %+v", *d)
	}
}

// cores asks for cores instead of MHz.
func cores(j *api.Job, n int) *api.Job {
	task(j).Resources.CPU, task(j).Resources.Cores = nil, &n
	return j
}

func planNoRoom(t *testing.T, c cluster) {
	c.runs(t, c.job(lasting))
	p := c.plan(t, cores(c.job(lasting), 64))
	m := p.FailedTGAllocs["g"]
	if m == nil || m.DimensionExhausted["cores"] != 1 || m.NodesExhausted != 1 {
		t.Fatalf("failed %+v", m)
	}
	if len(p.CreatedEvals) != 1 || p.CreatedEvals[0].Status != "blocked" {
		t.Errorf("evaluations %v", p.CreatedEvals)
	}
	big := c.job(lasting)
	task(big).Resources.MemoryMB = new(1 << 22)
	if m := c.plan(t, big).FailedTGAllocs["g"]; m == nil || m.DimensionExhausted["memory"] != 1 {
		t.Errorf("memory failed as %+v", m)
	}
}

// other is another job of this fact.
func (c cluster) other(t *testing.T, name string) cluster {
	t.Helper()
	c.id += "-" + name
	return c
}

func (c cluster) blocked(t *testing.T) []*api.Evaluation {
	t.Helper()
	list := must[[]*api.Evaluation](t)(c.Jobs().Evaluations(c.id, nil))
	return slices.DeleteFunc(list, func(e *api.Evaluation) bool { return e.Status != "blocked" })
}

func (c cluster) awaitBlocked(t *testing.T, n int) {
	t.Helper()
	await(t, "the blocked evaluation", func() error {
		if list := c.blocked(t); len(list) != n {
			return fmt.Errorf("there are %d, want %d", len(list), n)
		}
		return nil
	})
}

func roomLater(t *testing.T, c cluster) {
	o := c.other(t, "other")
	o.register(t, cores(o.job(lasting), 1))
	o.awaitAllocs(t, "running")
	first := c.runs(t, c.job(lasting))
	reg := c.register(t, cores(c.job(lasting), 2))
	e := c.awaitEval(t, reg.EvalID)
	if e.Status != "complete" || e.FailedTGAllocs["g"] == nil || e.BlockedEval == "" {
		t.Errorf("the evaluation is %s, failed %v, blocked by %q", e.Status, e.FailedTGAllocs, e.BlockedEval)
	}
	c.awaitBlocked(t, 1)
	if list := c.allocs(t); len(list) != 1 || list[0].ID != first.ID || list[0].DesiredStatus != "run" || list[0].JobVersion != 0 {
		t.Fatalf("there are %d allocations, the first is %s", len(list), list[0].DesiredStatus)
	}
	if now := c.read(t); *now.Version != 1 || *now.Status != "running" {
		t.Errorf("version %d, %s", *now.Version, *now.Status)
	}
	done(t)(o.Jobs().Deregister(o.id, false, nil))
	list := c.awaitAllocs(t, "complete", "running")
	if list[0].DesiredStatus != "stop" || list[1].JobVersion != 1 {
		t.Errorf("%s, version %d", list[0].DesiredStatus, list[1].JobVersion)
	}
}

func undo(t *testing.T, c cluster) {
	j := c.job(lasting)
	first := c.runs(t, j)
	c.register(t, cores(c.job(lasting), 64))
	c.awaitBlocked(t, 1)
	reg := c.register(t, j)
	c.awaitEval(t, reg.EvalID)
	c.awaitBlocked(t, 0)
	if list := c.allocs(t); len(list) != 1 || list[0].ID != first.ID || list[0].DesiredStatus != "run" || list[0].ClientStatus != "running" {
		t.Errorf("there are %d allocations, the first is %s", len(list), list[0].ClientStatus)
	}
	if v := *c.read(t).Version; v != 2 {
		t.Errorf("version %d, want 2", v)
	}
}

func waitForRoom(t *testing.T, c cluster) {
	o := c.other(t, "other")
	o.register(t, cores(o.job(lasting), 2))
	o.awaitAllocs(t, "running")
	c.register(t, cores(c.job("true"), 1))
	c.awaitBlocked(t, 1)
	if now := c.read(t); *now.Status != "pending" {
		t.Errorf("the job is %s", *now.Status)
	}
	s := must[*api.JobSummary](t)(c.Jobs().Summary(c.id, nil))
	if s.Summary["g"].Queued != 1 {
		t.Errorf("queued are %d", s.Summary["g"].Queued)
	}
	done(t)(o.Jobs().Deregister(o.id, false, nil))
	c.awaitAllocs(t, "complete")
	c.awaitBlocked(t, 0)
}

func stopWaiting(t *testing.T, c cluster) {
	c.register(t, cores(c.job("true"), 64))
	c.awaitBlocked(t, 1)
	done(t)(c.Jobs().Deregister(c.id, false, nil))
	c.awaitBlocked(t, 0)
	c.awaitStatus(t, "dead")
	if n := len(c.allocs(t)); n != 0 {
		t.Errorf("there are %d allocations", n)
	}
}
