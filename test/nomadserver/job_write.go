package nomadserver

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobcheck"
	"pitchpipe/test/nomadserver/state"
)

// registration is the body of a request to register.
type registration struct {
	api.JobRegisterRequest
}

// written is the answer to most changes of a job.
type written struct {
	EvalID          string
	EvalCreateIndex uint64
	JobModifyIndex  uint64
	Warnings        string
	Index           uint64
	LastContact     time.Duration
	KnownLeader     bool
	NextToken       string
}

func registerJob(c *call) error {
	var req registration
	if err := c.decode(&req); err != nil {
		return err
	}
	job, err := c.canonical(req.Job)
	if err != nil {
		return err
	}
	if c.name != "" && c.name != *job.ID {
		return refuse(http.StatusBadRequest, "Job ID does not match name in request path")
	}
	if !c.may(*job.Namespace, "submit-job", "register-job") {
		return denied()
	}
	if err := jobcheck.Validate(job); err != nil {
		return err
	}
	return c.register(job, &req.JobRegisterRequest)
}

// canonical checks what a request brings at least and fills in what it leaves out.
func (c *call) canonical(job *api.Job) (*api.Job, error) {
	if job == nil {
		return nil, refuse(http.StatusBadRequest, "Job must be specified")
	}
	if job.ID == nil {
		return nil, refuse(http.StatusBadRequest, "Job ID hasn't been provided")
	}
	if job.Namespace == nil || *job.Namespace == "" {
		job.Namespace = new(c.namespace())
	}
	out := jobcheck.Canonical(job)
	out.Dispatched = false // only a dispatch sets it, whatever a request says
	return out, nil
}

// register writes a job down, if it is allowed and changes anything.
func (c *call) register(job *api.Job, req *api.JobRegisterRequest) error {
	id := state.IDOf(job)
	var out written
	out.Warnings = jobcheck.Warnings(job, c.s.memoryMax())
	job.SubmitTime = new(time.Now().UnixNano())
	evaluate := !job.IsPeriodic() && !job.IsParameterized()
	index, err := c.s.store.Write("JobRegistered", func(tx *state.Tx) error {
		old := tx.Job(id)
		if err := c.s.allowed(old, job, req); err != nil {
			return err
		}
		policyIDs(old, job)
		changed := jobcheck.Changed(old, job)
		if changed {
			keep(old, job, req)
			tx.Register(job, req.Submission)
			out.JobModifyIndex = tx.At()
		} else {
			out.JobModifyIndex = *old.ModifyIndex
			job = old
		}
		if !evaluate {
			return nil
		}
		tx.Break()
		e := newEval(job, "job-register")
		if req.EvalPriority > 0 {
			e.Priority = req.EvalPriority
		}
		tx.PutEval(e)
		out.EvalID, out.EvalCreateIndex = e.ID, tx.At()
		return nil
	})
	if err != nil {
		return err
	}
	out.Index = index
	return c.reply(out, index)
}

// allowed says why a job may not take the place of what is registered.
func (s *Server) allowed(old, job *api.Job, req *api.JobRegisterRequest) error {
	if !s.hasNamespace(*job.Namespace) {
		return fmt.Errorf("job %q is in nonexistent namespace %q", *job.ID, *job.Namespace)
	}
	if req.EnforceIndex {
		if err := jobcheck.EnforceIndex(old, req.JobModifyIndex); err != nil {
			return err
		}
	}
	return jobcheck.Transition(old, job)
}

// policyIDs gives each scaling policy the name that it had, or a new one.
func policyIDs(old, job *api.Job) {
	for _, g := range job.TaskGroups {
		p := g.Scaling
		if p == nil {
			continue
		}
		p.ID = uuid()
		p.Target = map[string]string{"Namespace": *job.Namespace, "Job": *job.ID, "Group": *g.Name}
		if old == nil {
			continue
		}
		if was := old.LookupTaskGroup(*g.Name); was != nil && was.Scaling != nil {
			p.ID = was.Scaling.ID
		}
	}
}

// keep takes over counts or resources of the registered job where the request says so.
func keep(old, job *api.Job, req *api.JobRegisterRequest) {
	if old == nil {
		return
	}
	for _, g := range job.TaskGroups {
		was := old.LookupTaskGroup(*g.Name)
		if was == nil {
			continue
		}
		if req.PreserveCounts {
			g.Count = was.Count
		}
		if !req.PreserveResources {
			continue
		}
		for _, t := range g.Tasks {
			for _, w := range was.Tasks {
				if w.Name == t.Name {
					t.Resources = w.Resources
				}
			}
		}
	}
}

func deregisterJob(c *call) error {
	if err := c.need("submit-job", "deregister-job"); err != nil {
		return err
	}
	id, purge := c.id(), c.truth("purge")
	var out written
	index, err := c.s.store.Write("JobDeregistered", func(tx *state.Tx) error {
		old := tx.Job(id)
		if old == nil {
			return errNothing
		}
		stopped := *old
		stopped.Stop, stopped.SubmitTime = new(true), new(time.Now().UnixNano())
		if purge {
			tx.Purge(id)
		} else {
			stopped.TaskGroups = disabled(old)
			tx.Register(&stopped, nil)
		}
		out.JobModifyIndex, out.EvalCreateIndex = tx.At(), tx.At()
		if old.IsPeriodic() || old.IsParameterized() {
			return nil
		}
		tx.Break()
		e := newEval(&stopped, "job-deregister")
		e.Type, e.JobModifyIndex = api.JobTypeService, tx.At()
		tx.PutEval(e)
		out.EvalID = e.ID
		return nil
	})
	if errors.Is(err, errNothing) {
		return c.reply(out, 0)
	}
	if err != nil {
		return err
	}
	out.Index = index
	return c.reply(out, index)
}

// disabled are the groups of a stopped job: nobody scales it.
func disabled(j *api.Job) []*api.TaskGroup {
	var out []*api.TaskGroup
	for _, g := range j.TaskGroups {
		copied := *g
		if g.Scaling != nil {
			p := *g.Scaling
			p.Enabled = new(false)
			copied.Scaling = &p
		}
		out = append(out, &copied)
	}
	return out
}

func evaluateJob(c *call) error {
	if err := c.need("submit-job", "evaluate-job"); err != nil {
		return err
	}
	id := c.id()
	var req api.JobEvaluateRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	var out written
	index, err := c.s.store.Write("EvaluationUpdated", func(tx *state.Tx) error {
		job := tx.Job(id)
		switch {
		case job == nil:
			return fmt.Errorf("job not found")
		case job.IsPeriodic():
			return fmt.Errorf("can't evaluate periodic job")
		case job.IsParameterized():
			return fmt.Errorf("can't evaluate parameterized job")
		}
		if req.EvalOptions.ForceReschedule {
			for _, a := range tx.AllocsOf(id) {
				if a.ClientStatus == api.AllocClientStatusFailed && a.NextAllocation == "" {
					forced := *a
					forced.DesiredTransition.ForceReschedule = new(true)
					tx.PutAlloc(&forced, false)
				}
			}
		}
		e := newEval(job, "job-register")
		tx.PutEval(e)
		out.EvalID, out.EvalCreateIndex, out.JobModifyIndex = e.ID, tx.At(), *job.JobModifyIndex
		return nil
	})
	if err != nil {
		return err
	}
	out.Index = index
	return c.reply(out, index)
}
