package nomadserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/filter"
	"pitchpipe/test/nomadserver/state"
)

func readJob(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	id := c.id()
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		j := t.Job(id)
		if j == nil {
			return nil, t.Touched(state.Jobs), refuse(http.StatusNotFound, "job not found")
		}
		return j, *j.ModifyIndex, nil
	}, state.Key(state.Jobs, id.Namespace, id.Job))
}

func listJobs(c *call) error {
	keep, err := filter.Parse(c.query("filter"))
	if err != nil {
		return refuse(http.StatusBadRequest, "failed to read filter expression: %v", err)
	}
	ns := c.namespace()
	if ns != "*" {
		if err := c.need("list-jobs"); err != nil {
			return err
		}
	}
	prefix, meta := c.query("prefix"), c.truth("meta")
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.JobListStub{}
		for _, j := range t.Jobs(ns) {
			if !strings.HasPrefix(*j.ID, prefix) || !c.may(*j.Namespace, "list-jobs") {
				continue
			}
			ok, err := keep.Match(j)
			if err != nil {
				return nil, 0, refuse(http.StatusBadRequest, "%v", err)
			}
			if ok {
				out = append(out, stub(t, j, meta))
			}
		}
		return c.page(out), t.LastOf(state.Jobs, state.Summaries), nil
	}, state.Jobs, state.Summaries)
}

// page cuts a list of jobs as per_page and next_token say.
func (c *call) page(list []*api.JobListStub) []*api.JobListStub {
	key := func(j *api.JobListStub) string { return j.Namespace + "." + j.ID }
	if token := c.query("next_token"); token != "" {
		for len(list) > 0 && key(list[0]) < token {
			list = list[1:]
		}
	}
	n, err := strconv.Atoi(c.query("per_page"))
	if err == nil && n > 0 && n < len(list) {
		c.w.Header().Set("X-Nomad-NextToken", key(list[n]))
		list = list[:n]
	}
	return list
}

func stub(t *state.Tables, j *api.Job, meta bool) *api.JobListStub {
	out := &api.JobListStub{
		ID: *j.ID, ParentID: *j.ParentID, Name: *j.Name, Namespace: *j.Namespace, Datacenters: j.Datacenters, Type: *j.Type,
		Priority: *j.Priority, Periodic: j.IsPeriodic(), ParameterizedJob: j.IsParameterized(), Stop: *j.Stop,
		Status: *j.Status, StatusDescription: *j.StatusDescription, JobSummary: summary(t, j), CreateIndex: *j.CreateIndex,
		ModifyIndex: *j.ModifyIndex, JobModifyIndex: *j.JobModifyIndex, SubmitTime: *j.SubmitTime,
	}
	if meta {
		out.Meta = j.Meta
	}
	return out
}

// summary counts the allocations and the children of a job.
func summary(t *state.Tables, j *api.Job) *api.JobSummary {
	id := state.IDOf(j)
	out := &api.JobSummary{
		JobID: id.Job, Namespace: id.Namespace, Summary: map[string]api.TaskGroupSummary{}, Children: &api.JobChildrenSummary{},
		CreateIndex: *j.CreateIndex, ModifyIndex: t.Touched(state.Key(state.Summaries, id.Namespace, id.Job)),
	}
	for group, queued := range t.Queued(id) {
		out.Summary[group] = api.TaskGroupSummary{Queued: queued}
	}
	for _, a := range t.AllocsOf(id) {
		g := out.Summary[a.TaskGroup]
		switch a.ClientStatus {
		case api.AllocClientStatusPending:
			g.Starting++
		case api.AllocClientStatusRunning:
			g.Running++
		case api.AllocClientStatusComplete:
			g.Complete++
		case api.AllocClientStatusFailed:
			g.Failed++
		case api.AllocClientStatusLost:
			g.Lost++
		}
		out.Summary[a.TaskGroup] = g
	}
	if !j.IsPeriodic() && !j.IsParameterized() {
		return out
	}
	out.Children.Dead = int64(t.Gone(id))
	for _, child := range t.Jobs(id.Namespace) {
		if *child.ParentID != id.Job {
			continue
		}
		switch *child.Status {
		case state.Pending:
			out.Children.Pending++
		case state.Running:
			out.Children.Running++
		case state.Dead:
			out.Children.Dead++
		}
	}
	return out
}

func jobSummary(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	id := c.id()
	key := state.Key(state.Summaries, id.Namespace, id.Job)
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		j := t.Job(id)
		if j == nil {
			return nil, 0, refuse(http.StatusNotFound, "job not found")
		}
		return summary(t, j), t.Touched(key), nil
	}, key)
}

func jobAllocs(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	id, all := c.id(), c.truth("all")
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.AllocationListStub{}
		job := t.Job(id)
		for _, a := range t.AllocsOf(id) {
			// Those of a purged job of the same name show only on demand.
			if all || job == nil || *a.Job.CreateIndex == *job.CreateIndex {
				out = append(out, allocStub(a))
			}
		}
		return out, t.Touched(state.Allocs), nil
	}, state.Key(state.Allocs, id.Namespace, id.Job))
}

func jobEvals(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	id := c.id()
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := t.EvalsOf(id)
		if out == nil {
			out = []*api.Evaluation{}
		}
		return out, t.Touched(state.Evals), nil
	}, state.Key(state.Evals, id.Namespace, id.Job))
}

func noDeployments(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	return c.reply([]*api.Deployment{}, 1)
}

func noDeployment(c *call) error {
	if err := c.need("read-job"); err != nil {
		return err
	}
	return c.reply(nil, 1)
}
