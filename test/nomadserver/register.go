package nomadserver

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
	"pitchpipe/test/nomadserver/jobspec"
)

// written is the answer to most changes of a job.
type written struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
}

func newEval(j *api.Job, why string) *api.Evaluation {
	return &api.Evaluation{
		ID: uuid(), Namespace: *j.Namespace, JobID: *j.ID, Priority: *j.Priority, Type: *j.Type,
		JobModifyIndex: *j.JobModifyIndex, TriggeredBy: why, Status: api.EvalStatusPending,
	}
}

// evaluates reports whether a job is scheduled, as its children are where it has some.
func evaluates(j *api.Job) bool { return !j.IsPeriodic() && !j.IsParameterized() }

// parseJob reads a job file, as api.Jobs().ParseHCL asks for.
func parseJob(c *call, req api.JobsParseRequest) error {
	if req.JobHCL == "" {
		return refuse(http.StatusBadRequest, "Job spec is empty")
	}
	job, err := jobspec.Parse(req.JobHCL, req.Variables)
	if err != nil {
		return refuse(http.StatusBadRequest, "Failed to parse job: %v", err)
	}
	if req.Canonicalize {
		job.Canonicalize()
	}
	return c.reply(job, 0)
}

// canonical fills in what a request leaves out, and wants a right where one is named.
func (c *call) canonical(job *api.Job, right string) (*api.Job, error) {
	switch {
	case job == nil:
		return nil, refuse(http.StatusBadRequest, "Job must be specified")
	case job.ID == nil:
		return nil, refuse(http.StatusBadRequest, "Job ID hasn't been provided")
	case c.name != "" && c.name != *job.ID:
		return nil, refuse(http.StatusBadRequest, "Job ID does not match name in request path")
	}
	if job.Namespace == nil || *job.Namespace == "" {
		job.Namespace = new(c.namespace())
	}
	if right != "" && !c.may(*job.Namespace, right) {
		return nil, denied()
	}
	out := cluster.Canonical(job)
	out.Dispatched = false // only a dispatch sets it, whatever a request says
	return out, nil
}

func validateJob(c *call, req api.JobValidateRequest) error {
	job, err := c.canonical(req.Job, "")
	if err != nil {
		return err
	}
	out := api.JobValidateResponse{DriverConfigValidated: true, Warnings: cluster.Warnings(job, c.s.opts.Oversubscribe)}
	if err := cluster.Validate(job); err != nil {
		out.Error = err.Error()
		out.ValidationErrors, _ = errors.AsType[cluster.Problems](err)
	}
	return c.reply(out, 0)
}

func registerJob(c *call, req api.JobRegisterRequest) error {
	job, err := c.canonical(req.Job, "register-job")
	if err != nil {
		return err
	}
	if err := cluster.Validate(job); err != nil {
		return err
	}
	return c.register(job, &req)
}

// register writes a job down, if it is allowed and changes anything.
func (c *call) register(job *api.Job, req *api.JobRegisterRequest) error {
	out := written{Warnings: cluster.Warnings(job, c.s.opts.Oversubscribe)}
	job.SubmitTime, job.ParentID = new(time.Now().UnixNano()), new("") // Nomad takes no parent from a caller
	return c.change(&out, func(tx *cluster.Tx) error {
		old := tx.Job(cluster.IDOf(job))
		if err := c.s.refuses(old, job, req); err != nil {
			return err
		}
		policyIDs(old, job)
		out.JobModifyIndex = tx.At()
		if !cluster.Changed(old, job) {
			out.JobModifyIndex = *old.ModifyIndex
			job = old
		} else {
			if old != nil && req.PreserveResources {
				keepResources(old, job)
			}
			tx.Register(job, req.Submission)
		}
		if evaluates(job) {
			e := newEval(job, "job-register")
			tx.PutEval(e)
			out.EvalID, out.EvalCreateIndex = e.ID, tx.At()
		}
		return nil
	})
}

// refuses says why a job may not take the place of what is registered.
func (s *Server) refuses(old, job *api.Job, req *api.JobRegisterRequest) error {
	s.mu.Lock()
	_, ok := s.namespaces[*job.Namespace]
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("job %q is in nonexistent namespace %q", *job.ID, *job.Namespace)
	}
	if req.EnforceIndex {
		if err := cluster.EnforceIndex(old, req.JobModifyIndex); err != nil {
			return err
		}
	}
	return cluster.Transition(old, job)
}

// policyIDs gives each scaling policy the id that it had, or a new one.
func policyIDs(old, job *api.Job) {
	for _, g := range job.TaskGroups {
		if g.Scaling == nil {
			continue
		}
		g.Scaling.ID = uuid()
		g.Scaling.Target = map[string]string{"Namespace": *job.Namespace, "Job": *job.ID, "Group": *g.Name}
		if old == nil {
			continue
		}
		if was := old.LookupTaskGroup(*g.Name); was != nil && was.Scaling != nil {
			g.Scaling.ID = was.Scaling.ID
		}
	}
}

func keepResources(old, job *api.Job) {
	for _, g := range job.TaskGroups {
		was := old.LookupTaskGroup(*g.Name)
		for _, t := range g.Tasks {
			if was == nil {
				continue
			}
			if i := slices.IndexFunc(was.Tasks, func(w *api.Task) bool { return w.Name == t.Name }); i >= 0 {
				t.Resources = was.Tasks[i].Resources
			}
		}
	}
}

// planJob says what a registration would do, and does nothing.
func planJob(c *call, req api.JobPlanRequest) error {
	job, err := c.canonical(req.Job, "plan-job")
	if err != nil {
		return err
	}
	if err := cluster.Validate(job); err != nil {
		return err
	}
	out := api.JobPlanResponse{Warnings: cluster.Warnings(job, c.s.opts.Oversubscribe), Annotations: &api.PlanAnnotations{}}
	c.s.store.Read(func(t *cluster.Tables) {
		old := t.Job(cluster.IDOf(job))
		policyIDs(old, job)
		job.CreateIndex, job.JobModifyIndex, job.Version = new(t.Index()+1), new(t.Index()+1), new(uint64(0))
		if old != nil {
			out.JobModifyIndex = *old.JobModifyIndex
			job.CreateIndex, job.JobModifyIndex, job.Version = old.CreateIndex, new(*old.JobModifyIndex+1), new(*old.Version+1)
			if !cluster.Changed(old, job) {
				job = old
			}
		}
		if !evaluates(job) {
			return
		}
		p := cluster.Decide(c.s.input(t, cluster.IDOf(job), job, ""))
		out.Annotations.DesiredTGUpdates = p.Desired
		if len(p.Failed) > 0 {
			out.FailedTGAllocs = p.Failed
			e := newEval(job, "queued-allocs")
			e.Status, e.FailedTGAllocs = api.EvalStatusBlocked, p.Failed
			out.CreatedEvals = append(out.CreatedEvals, e)
		}
	})
	return c.reply(out, out.JobModifyIndex)
}

func deregisterJob(c *call) error {
	var out written
	return c.change(&out, func(tx *cluster.Tx) error {
		old := tx.Job(c.id())
		if old == nil {
			return errNothing
		}
		stopped := cluster.Copy(old)
		stopped.Stop, stopped.SubmitTime = new(true), new(time.Now().UnixNano())
		for _, g := range stopped.TaskGroups {
			if g.Scaling != nil {
				g.Scaling.Enabled = new(false)
			}
		}
		if c.truth("purge") {
			tx.Purge(c.id())
		} else {
			tx.Register(stopped, nil)
		}
		out.JobModifyIndex, out.EvalCreateIndex = tx.At(), tx.At()
		if evaluates(old) {
			e := newEval(stopped, "job-deregister")
			e.Type, e.JobModifyIndex = api.JobTypeService, tx.At()
			tx.PutEval(e)
			out.EvalID = e.ID
		}
		return nil
	})
}

func revertJob(c *call, req api.JobRevertRequest) error {
	var now, then *api.Job
	c.s.store.Read(func(t *cluster.Tables) { now, then = t.Job(c.id()), t.Version(c.id(), req.JobVersion) })
	switch {
	case now == nil:
		return fmt.Errorf("job %q not found", c.name)
	case *now.Version == req.JobVersion:
		return fmt.Errorf("can't revert to current version")
	case then == nil:
		return fmt.Errorf("job %q in namespace %q at version %d not found", c.name, c.namespace(), req.JobVersion)
	}
	reg := &api.JobRegisterRequest{}
	if v := req.EnforcePriorVersion; v != nil {
		if *v != *now.Version {
			return fmt.Errorf("Current job has version %d; enforcing version %d", *now.Version, *v) //nolint:staticcheck // Nomad's text
		}
		reg.EnforceIndex, reg.JobModifyIndex = true, *now.JobModifyIndex
	}
	job := cluster.Copy(then)
	job.VersionTag = nil
	return c.register(job, reg)
}

func tagVersion(c *call, req api.TagVersionRequest) error {
	name, tag, _ := strings.Cut(c.name, "/versions/")
	c.name = name
	return c.change(map[string]any{"Name": tag}, func(tx *cluster.Tx) error {
		old := tx.Version(c.id(), req.Version)
		if old == nil {
			return fmt.Errorf("job %q version %d not found", name, req.Version)
		}
		for _, v := range tx.Versions(c.id()) {
			if v.VersionTag != nil && v.VersionTag.Name == tag && v != old {
				return fmt.Errorf("tag %q already exists on a different version of job %q", tag, name)
			}
		}
		j := *old
		j.VersionTag = &api.JobVersionTag{Name: tag, Description: req.Description, TaggedTime: time.Now().UnixNano()}
		tx.Amend(&j)
		return nil
	})
}
