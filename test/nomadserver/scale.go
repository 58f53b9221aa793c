package nomadserver

import (
	"net/http"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobcheck"
	"pitchpipe/test/nomadserver/state"
)

// scaleJob changes a count, or with none writes a line into the job's scaling events.
func scaleJob(c *call) error {
	if err := c.need("scale-job", "submit-job"); err != nil {
		return err
	}
	var req api.ScalingRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	group := req.Target["Group"]
	if group == "" {
		return refuse(http.StatusBadRequest, "missing task group name for scaling action")
	}
	id := c.id()
	event := api.ScalingEvent{
		Count: req.Count, Message: req.Message, Error: req.Error, Meta: req.Meta, Time: uint64(time.Now().UnixNano()),
	}
	var out written
	if req.Count != nil {
		if err := c.resize(id, group, &req, &event, &out); err != nil {
			return err
		}
	}
	index, err := c.s.store.Write("", func(tx *state.Tx) error {
		g, job, err := target(tx, id, group)
		if err != nil {
			return err
		}
		if req.Count == nil {
			out.JobModifyIndex = *job.ModifyIndex
			event.PreviousCount = int64(*g.Count)
		}
		tx.AddScalingEvent(id, group, event)
		return nil
	})
	if err != nil {
		return err
	}
	out.Index = index
	return c.reply(out, index)
}

func target(tx *state.Tx, id state.ID, group string) (*api.TaskGroup, *api.Job, error) {
	job := tx.Job(id)
	if job == nil {
		return nil, nil, refuse(http.StatusNotFound, "job %q not found", id.Job)
	}
	g := job.LookupTaskGroup(group)
	if g == nil {
		return nil, nil, refuse(http.StatusBadRequest, "task group %q specified for scaling does not exist in job", group)
	}
	return g, job, nil
}

// resize registers the job with another count.
func (c *call) resize(id state.ID, group string, req *api.ScalingRequest, event *api.ScalingEvent, out *written) error {
	_, err := c.s.store.Write("JobRegistered", func(tx *state.Tx) error {
		g, old, err := target(tx, id, group)
		if err != nil {
			return err
		}
		if s := g.Scaling; s != nil {
			if *req.Count < *s.Min {
				return refuse(http.StatusBadRequest, "group count was less than scaling policy minimum: %d < %d", *req.Count, *s.Min)
			}
			if *req.Count > *s.Max {
				return refuse(http.StatusBadRequest, "group count was greater than scaling policy maximum: %d > %d", *req.Count, *s.Max)
			}
		}
		if req.JobModifyIndex > 0 {
			if err := jobcheck.EnforceIndex(old, req.JobModifyIndex); err != nil {
				return err
			}
		}
		event.PreviousCount = int64(*g.Count)
		job := *old
		job.TaskGroups = slices.Clone(old.TaskGroups)
		for i, other := range job.TaskGroups {
			if other == g {
				resized := *g
				resized.Count = new(int(*req.Count))
				job.TaskGroups[i] = &resized
			}
		}
		job.SubmitTime = new(time.Now().UnixNano())
		tx.Register(&job, nil)
		out.JobModifyIndex = tx.At()
		if job.IsPeriodic() || job.IsParameterized() {
			return nil
		}
		tx.Break()
		e := newEval(&job, "job-scaling")
		tx.PutEval(e)
		out.EvalID, out.EvalCreateIndex = e.ID, tx.At()
		event.EvalID = &e.ID
		return nil
	})
	return err
}

func scaleStatus(c *call) error {
	if err := c.need("read-job", "read-job-scaling"); err != nil {
		return err
	}
	id := c.id()
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		j := t.Job(id)
		if j == nil {
			return nil, 0, refuse(http.StatusNotFound, "job not found")
		}
		out := &api.JobScaleStatusResponse{
			JobID: id.Job, Namespace: id.Namespace, JobCreateIndex: *j.CreateIndex, JobModifyIndex: *j.ModifyIndex,
			JobStopped: *j.Stop, TaskGroups: map[string]api.TaskGroupScaleStatus{},
		}
		for _, g := range j.TaskGroups {
			st := api.TaskGroupScaleStatus{Desired: *g.Count, Events: t.ScalingEvents(id)[*g.Name]}
			for _, a := range t.AllocsOf(id) {
				if a.TaskGroup == *g.Name && !state.AllocEnded(a) {
					st.Placed++
					if a.ClientStatus == api.AllocClientStatusRunning {
						st.Running++
					}
				}
			}
			out.TaskGroups[*g.Name] = st
		}
		key := state.Key(state.Scaling, id.Namespace, id.Job)
		return out, max(*j.ModifyIndex, t.Touched(key)), nil
	}, state.Key(state.Jobs, id.Namespace, id.Job), state.Key(state.Scaling, id.Namespace, id.Job))
}

// policies are the scaling policies of all jobs that have any.
func policies(t *state.Tables, namespace string) []*api.ScalingPolicy {
	var out []*api.ScalingPolicy
	for _, j := range t.Jobs(namespace) {
		for _, g := range j.TaskGroups {
			if g.Scaling != nil {
				p := *g.Scaling
				p.CreateIndex, p.ModifyIndex, p.Namespace = *j.CreateIndex, *j.JobModifyIndex, *j.Namespace
				out = append(out, &p)
			}
		}
	}
	return out
}

func listPolicies(c *call) error {
	ns, job := c.namespace(), c.query("job")
	if ns != "*" {
		if err := c.need("list-scaling-policies", "submit-job"); err != nil {
			return err
		}
	}
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		out := []*api.ScalingPolicyListStub{}
		for _, p := range policies(t, ns) {
			if !c.may(p.Namespace, "list-scaling-policies", "submit-job") || job != "" && p.Target["Job"] != job {
				continue
			}
			out = append(out, &api.ScalingPolicyListStub{
				ID: p.ID, Enabled: *p.Enabled, Type: p.Type, Target: p.Target, CreateIndex: p.CreateIndex, ModifyIndex: p.ModifyIndex,
			})
		}
		return out, t.Touched(state.Policies), nil
	}, state.Policies)
}

func readPolicy(c *call) error {
	return c.watch(func(t *state.Tables) (any, uint64, error) {
		for _, p := range policies(t, "*") {
			if p.ID == c.name && c.may(p.Namespace, "read-scaling-policy", "submit-job") {
				return p, p.ModifyIndex, nil
			}
		}
		return nil, 0, refuse(http.StatusNotFound, "policy not found")
	}, state.Policies)
}
