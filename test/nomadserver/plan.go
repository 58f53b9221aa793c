package nomadserver

import (
	"errors"
	"net/http"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobcheck"
	"pitchpipe/test/nomadserver/jobdiff"
	"pitchpipe/test/nomadserver/jobspec"
	"pitchpipe/test/nomadserver/schedule"
	"pitchpipe/test/nomadserver/state"
)

// planJob says what a registration would do, and does nothing.
func planJob(c *call) error {
	var req api.JobPlanRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	job, err := c.canonical(req.Job)
	if err != nil {
		return err
	}
	if *job.ID != c.name {
		return refuse(http.StatusBadRequest, "Job ID does not match")
	}
	if !c.may(*job.Namespace, "submit-job", "plan-job") {
		return denied()
	}
	if err := jobcheck.Validate(job); err != nil {
		return err
	}
	var out struct {
		api.JobPlanResponse
		Index uint64
	}
	out.Warnings = jobcheck.Warnings(job, c.s.memoryMax())
	id := state.IDOf(job)
	c.s.store.Read(func(t *state.Tables) {
		old := t.Job(id)
		policyIDs(old, job)
		next := job
		job.CreateIndex, job.JobModifyIndex, job.Version = new(t.Index()+1), new(t.Index()+1), new(uint64(0))
		if old != nil {
			out.JobModifyIndex = *old.JobModifyIndex
			job.CreateIndex, job.JobModifyIndex = old.CreateIndex, new(*old.JobModifyIndex+1)
			job.Version = new(*old.Version + 1)
			if !jobcheck.Changed(old, job) {
				next = old
			}
		}
		if req.Diff {
			out.Diff = jobdiff.Jobs(old, job)
		}
		if job.IsPeriodic() || job.IsParameterized() {
			out.Annotations = &api.PlanAnnotations{DesiredTGUpdates: map[string]*api.DesiredUpdates{}}
			return
		}
		p := schedule.Decide(c.s.input(t, id.Namespace, id.Job, next, ""))
		out.Annotations = &api.PlanAnnotations{DesiredTGUpdates: p.Desired}
		if len(p.Failed) > 0 {
			out.FailedTGAllocs = p.Failed
			e := newEval(next, "queued-allocs")
			e.Status, e.FailedTGAllocs = api.EvalStatusBlocked, p.Failed
			out.CreatedEvals = append(out.CreatedEvals, e)
		}
	})
	if out.Diff != nil {
		jobdiff.Annotate(out.Diff, out.Annotations.DesiredTGUpdates)
	}
	if job.IsPeriodic() && *job.Periodic.Enabled {
		if next, err := job.Periodic.Next(time.Now().UTC()); err == nil {
			out.NextPeriodicLaunch = next
		}
	}
	out.Index = out.JobModifyIndex
	return c.reply(out, out.JobModifyIndex)
}

func validateJob(c *call) error {
	var req api.JobValidateRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	job, err := c.canonical(req.Job)
	if err != nil {
		return err
	}
	if err := c.need("read-job", "submit-job", "parse-job", "plan-job", "register-job"); err != nil {
		return err
	}
	out := api.JobValidateResponse{DriverConfigValidated: true, Warnings: jobcheck.Warnings(job, c.s.memoryMax())}
	if err := jobcheck.Validate(job); err != nil {
		out.Error = err.Error()
		if p, ok := errors.AsType[jobcheck.Problems](err); ok {
			out.ValidationErrors = p
		}
	}
	return c.reply(out, 0)
}

// parseJob reads a job file, as api.Jobs().ParseHCL asks for.
func parseJob(c *call) error {
	if err := c.need("parse-job", "submit-job"); err != nil {
		return err
	}
	var req api.JobsParseRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.JobHCL == "" {
		return refuse(http.StatusBadRequest, "Job spec is empty")
	}
	job, err := c.s.ports.parse(jobspec.Input{Filename: "input.hcl", Source: []byte(req.JobHCL), VarFile: req.Variables})
	if err != nil {
		return refuse(http.StatusBadRequest, "Failed to parse job: %v", err)
	}
	if req.Canonicalize {
		job.Canonicalize()
	}
	return c.reply(job, 0)
}
