package nomadserver

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

func listJobs(c *call) error {
	ns, prefix, meta := c.namespace(), c.query("prefix"), c.truth("meta")
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		out := []*api.JobListStub{}
		for _, j := range t.Jobs(ns) {
			if !strings.HasPrefix(*j.ID, prefix) || !c.may(*j.Namespace, "list-jobs") {
				continue
			}
			stub := &api.JobListStub{
				ID: *j.ID, ParentID: *j.ParentID, Name: *j.Name, Namespace: *j.Namespace, Datacenters: j.Datacenters, Type: *j.Type,
				Priority: *j.Priority, Periodic: j.IsPeriodic(), ParameterizedJob: j.IsParameterized(), Stop: *j.Stop,
				Status: *j.Status, JobSummary: t.Summary(j), CreateIndex: *j.CreateIndex,
				ModifyIndex: *j.ModifyIndex, JobModifyIndex: *j.JobModifyIndex, SubmitTime: *j.SubmitTime,
			}
			if meta {
				stub.Meta = j.Meta
			}
			out = append(out, stub)
		}
		return out, t.Touched(cluster.Jobs, cluster.Summaries), nil
	})
}

func readJob(c *call) error {
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		j := t.Job(c.id())
		if j == nil {
			return nil, 0, refuse(http.StatusNotFound, "job not found")
		}
		return j, *j.ModifyIndex, nil
	})
}

func jobSummary(c *call) error {
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		j := t.Job(c.id())
		if j == nil {
			return nil, 0, refuse(http.StatusNotFound, "job not found")
		}
		s := t.Summary(j)
		return s, s.ModifyIndex, nil
	})
}

func jobAllocs(c *call) error {
	all := c.truth("all")
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		out := []*api.AllocationListStub{}
		job := t.Job(c.id())
		for _, a := range t.AllocsOf(c.id()) {
			// Those of a purged job of the same name show only on demand.
			if all || job == nil || *a.Job.CreateIndex == *job.CreateIndex {
				out = append(out, a.Stub())
			}
		}
		return out, t.Touched(cluster.Allocs), nil
	})
}

func jobEvals(c *call) error {
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		return append([]*api.Evaluation{}, t.EvalsOf(c.id())...), t.Touched(cluster.Evals), nil
	})
}

func readEval(c *call) error {
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		e := t.Eval(c.name)
		if e == nil {
			return nil, 0, refuse(http.StatusNotFound, "eval not found")
		}
		return e, e.ModifyIndex, nil
	})
}

func jobVersions(c *call) error {
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		list := t.Versions(c.id())
		if len(list) == 0 {
			return nil, 0, refuse(http.StatusNotFound, "job versions not found")
		}
		return map[string]any{"Versions": list}, *list[0].ModifyIndex, nil
	})
}

func jobSubmission(c *call) error {
	version, err := strconv.ParseUint(c.query("version"), 10, 64)
	if err != nil {
		return refuse(http.StatusBadRequest, "Unable to parse version number: %v", err)
	}
	return c.watch(func(t *cluster.Tables) (any, uint64, error) {
		sub := t.Submission(c.id(), version)
		if sub == nil {
			return nil, 0, refuse(http.StatusNotFound, "job source not found")
		}
		return sub, t.Touched(cluster.Jobs), nil
	})
}
