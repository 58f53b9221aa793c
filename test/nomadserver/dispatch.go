package nomadserver

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/jobcheck"
	"pitchpipe/test/nomadserver/state"
)

// dispatched is the answer to a dispatch.
type dispatched struct {
	DispatchedJobID string
	EvalID          string
	EvalCreateIndex uint64
	JobCreateIndex  uint64
	Index           uint64
}

// dispatchJob makes a child of a parameterized job; with a token that was used before
// it is the child of that time.
func dispatchJob(c *call) error {
	if err := c.need("dispatch-job", "submit-job"); err != nil {
		return err
	}
	var req api.JobDispatchRequest
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.JobID != "" && req.JobID != c.name {
		return refuse(http.StatusBadRequest, "Job ID does not match")
	}
	id, token := c.id(), c.query("idempotency_token")
	var out dispatched
	index, err := c.s.store.Write("JobRegistered", func(tx *state.Tx) error {
		parent := tx.Job(id)
		if err := dispatchable(parent, id, &req); err != nil {
			return err
		}
		for _, j := range tx.Jobs(id.Namespace) {
			if token != "" && *j.ParentID == id.Job && j.DispatchIdempotencyToken != nil && *j.DispatchIdempotencyToken == token {
				out = dispatched{DispatchedJobID: *j.ID, JobCreateIndex: *j.CreateIndex, Index: *j.ModifyIndex}
				return errNothing
			}
		}
		child := childOf(parent, dispatchID(id.Job, req.IdPrefixTemplate, time.Now()))
		child.Name = child.ID
		child.Dispatched = true
		child.DispatchIdempotencyToken = &token
		child.Payload = req.Payload
		if req.Priority > 0 {
			child.Priority = new(req.Priority)
		}
		if child.Meta == nil {
			child.Meta = map[string]string{}
		}
		maps.Copy(child.Meta, req.Meta)
		tx.Register(child, nil)
		tx.Break()
		e := newEval(child, "job-register")
		tx.PutEval(e)
		out = dispatched{DispatchedJobID: *child.ID, EvalID: e.ID, EvalCreateIndex: tx.At(), JobCreateIndex: tx.At(), Index: tx.At()}
		return nil
	})
	if err != nil && out.DispatchedJobID == "" {
		return err
	}
	return c.reply(out, max(index, out.Index))
}

// childOf is a new job made of another.
func childOf(parent *api.Job, id string) *api.Job {
	child := jobcheck.Copy(parent)
	child.ID, child.ParentID = &id, parent.ID
	child.Version, child.Status, child.Stable = new(uint64(0)), new(""), new(false)
	child.SubmitTime = new(time.Now().UnixNano())
	child.VersionTag = nil
	return child
}

func dispatchID(parent, prefix string, now time.Time) string {
	if prefix != "" {
		return fmt.Sprintf("%s%s%s-%d-%s", parent, api.JobDispatchLaunchSuffix, prefix, now.Unix(), uuid()[:8])
	}
	return fmt.Sprintf("%s%s%d-%s", parent, api.JobDispatchLaunchSuffix, now.Unix(), uuid()[:8])
}

func dispatchable(parent *api.Job, id state.ID, req *api.JobDispatchRequest) error {
	switch {
	case parent == nil:
		return fmt.Errorf("parameterized job not found")
	case !parent.IsParameterized():
		return fmt.Errorf("Specified job %q is not a parameterized job", id.Job) //nolint:staticcheck // Nomad's text
	case *parent.Stop:
		return fmt.Errorf("Specified job %q is stopped", id.Job) //nolint:staticcheck // Nomad's text
	}
	p := parent.ParameterizedJob
	switch {
	case p.Payload == "required" && len(req.Payload) == 0:
		return fmt.Errorf("Payload is not provided but required by parameterized job") //nolint:staticcheck // Nomad's text
	case p.Payload == "forbidden" && len(req.Payload) > 0:
		return fmt.Errorf("Payload provided but forbidden by parameterized job") //nolint:staticcheck // Nomad's text
	case len(req.Payload) > 16<<10:
		return fmt.Errorf("Payload exceeds maximum size; %d > %d", len(req.Payload), 16<<10) //nolint:staticcheck // Nomad's text
	}
	var extra, missing []string
	for k := range req.Meta {
		if !slices.Contains(p.MetaRequired, k) && !slices.Contains(p.MetaOptional, k) {
			extra = append(extra, k)
		}
	}
	for _, k := range p.MetaRequired {
		if _, ok := req.Meta[k]; !ok {
			missing = append(missing, k)
		}
	}
	slices.Sort(extra)
	slices.Sort(missing)
	switch {
	case len(extra) > 0:
		return fmt.Errorf("Dispatch request included unpermitted metadata keys: %v", extra) //nolint:staticcheck // Nomad's text
	case len(missing) > 0:
		return fmt.Errorf("Dispatch did not provide required meta keys: %v", missing) //nolint:staticcheck // Nomad's text
	}
	return nil
}

// forcePeriodic starts a child of a periodic job now.
func forcePeriodic(c *call) error {
	if err := c.need("dispatch-job", "submit-job"); err != nil {
		return err
	}
	id := c.id()
	e, index, err := c.s.spawn(id, time.Now())
	if err != nil {
		return err
	}
	return c.reply(map[string]any{"EvalID": e, "EvalCreateIndex": index, "Index": index}, index)
}

// spawn registers the child of a periodic job for a time.
func (s *Server) spawn(id state.ID, at time.Time) (eval string, index uint64, err error) {
	index, err = s.store.Write("JobRegistered", func(tx *state.Tx) error {
		parent := tx.Job(id)
		switch {
		case parent == nil:
			return fmt.Errorf("job not found")
		case !parent.IsPeriodic():
			return refuse(http.StatusBadRequest, "can't force launch non-periodic job")
		}
		child := childOf(parent, fmt.Sprintf("%s%s%d", id.Job, api.JobPeriodicLaunchSuffix, at.Unix()))
		child.Name = child.ID
		child.Periodic = nil
		if old := tx.Job(state.IDOf(child)); old != nil {
			child.Version = old.Version
		}
		tx.Register(child, nil)
		tx.Break()
		e := newEval(child, "periodic-job")
		tx.PutEval(e)
		eval = e.ID
		return nil
	})
	return eval, index, err
}

// launchPeriodic starts the children of periodic jobs when they are due.
func (s *Server) launchPeriodic() {
	last := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case now := <-tick.C:
			for id, at := range s.due(last, now) {
				if _, _, err := s.spawn(id, at); err != nil {
					s.opts.Logger.Error("a periodic job did not start", "job", id.Job, "error", err)
				}
			}
			last = now
		}
	}
}

// due lists the periodic jobs with a launch in (from, to].
func (s *Server) due(from, to time.Time) map[state.ID]time.Time {
	out := map[state.ID]time.Time{}
	s.store.Read(func(t *state.Tables) {
		for _, j := range t.Jobs("*") {
			if !j.IsPeriodic() || *j.Stop || !*j.Periodic.Enabled {
				continue
			}
			zone, err := j.Periodic.GetLocation()
			if err != nil {
				continue
			}
			at, err := j.Periodic.Next(from.In(zone))
			if err != nil || at.IsZero() || at.After(to) {
				continue
			}
			if *j.Periodic.ProhibitOverlap && busy(t, j) {
				continue
			}
			out[state.IDOf(j)] = at
		}
	})
	return out
}

func busy(t *state.Tables, parent *api.Job) bool {
	return slices.ContainsFunc(t.Jobs(*parent.Namespace), func(j *api.Job) bool {
		return *j.ParentID == *parent.ID && strings.Contains(*j.ID, api.JobPeriodicLaunchSuffix) && *j.Status != state.Dead
	})
}
