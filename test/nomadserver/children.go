package nomadserver

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

// childOf is a new job made of another, with the name PARENT/KIND-SUFFIX.
func childOf(parent *api.Job, suffix string) *api.Job {
	child := cluster.Copy(parent)
	child.ID, child.ParentID = new(*parent.ID+suffix), parent.ID
	child.Name = child.ID
	child.Version, child.Stable, child.VersionTag = new(uint64(0)), new(false), nil
	child.SubmitTime = new(time.Now().UnixNano())
	return child
}

// dispatchJob makes a child of a parameterized job; with a token that was used before it
// is the child of that time.
func dispatchJob(c *call, req api.JobDispatchRequest) error {
	token := c.query("idempotency_token")
	var out struct {
		DispatchedJobID, EvalID         string
		EvalCreateIndex, JobCreateIndex uint64
	}
	return c.change(&out, func(tx *cluster.Tx) error {
		parent := tx.Job(c.id())
		if err := dispatches(parent, &req); err != nil {
			return err
		}
		for _, j := range tx.Jobs(c.namespace()) {
			if token != "" && *j.ParentID == c.name && *j.DispatchIdempotencyToken == token {
				out.DispatchedJobID, out.JobCreateIndex = *j.ID, *j.CreateIndex
				return errNothing
			}
		}
		child := childOf(parent, fmt.Sprintf("%s%d-%s", api.JobDispatchLaunchSuffix, time.Now().Unix(), uuid()[:8]))
		child.Dispatched, child.DispatchIdempotencyToken, child.Payload = true, &token, req.Payload
		meta := maps.Clone(child.Meta)
		if meta == nil {
			meta = map[string]string{}
		}
		maps.Copy(meta, req.Meta)
		child.Meta = meta
		tx.Register(child, nil)
		e := newEval(child, "job-register")
		tx.PutEval(e)
		out.DispatchedJobID, out.EvalID, out.EvalCreateIndex, out.JobCreateIndex = *child.ID, e.ID, tx.At(), tx.At()
		return nil
	})
}

// dispatches says why a job cannot be dispatched.
func dispatches(parent *api.Job, req *api.JobDispatchRequest) error {
	switch {
	case parent == nil:
		return fmt.Errorf("parameterized job not found")
	case !parent.IsParameterized():
		return fmt.Errorf("Specified job %q is not a parameterized job", *parent.ID) //nolint:staticcheck // Nomad's text
	}
	p := parent.ParameterizedJob
	unknown, missing := maps.Clone(req.Meta), slices.Clone(p.MetaRequired)
	for k := range req.Meta {
		if slices.Contains(p.MetaRequired, k) || slices.Contains(p.MetaOptional, k) {
			delete(unknown, k)
		}
		missing = slices.DeleteFunc(missing, func(m string) bool { return m == k })
	}
	switch {
	case len(unknown) > 0:
		return fmt.Errorf("Dispatch request included unpermitted metadata keys: %v", slices.Sorted(maps.Keys(unknown))) //nolint:staticcheck // Nomad's text
	case len(missing) > 0:
		return fmt.Errorf("Dispatch did not provide required meta keys: %v", missing) //nolint:staticcheck // Nomad's text
	}
	return nil
}

// forcePeriodic starts a child of a periodic job now.
func forcePeriodic(c *call) error {
	e, err := c.s.spawn(c.id(), time.Now())
	if err != nil {
		return err
	}
	return c.reply(map[string]any{"EvalID": e}, 0)
}

// spawn registers the child of a periodic job for a time.
func (s *Server) spawn(id cluster.ID, at time.Time) (eval string, err error) {
	_, err = s.store.Write(func(tx *cluster.Tx) error {
		parent := tx.Job(id)
		if parent == nil || !parent.IsPeriodic() {
			return fmt.Errorf("can't force launch non-periodic job")
		}
		child := childOf(parent, fmt.Sprintf("%s%d", api.JobPeriodicLaunchSuffix, at.Unix()))
		child.Periodic = nil
		if old := tx.Job(cluster.IDOf(child)); old != nil {
			child.Version = old.Version
		}
		tx.Register(child, nil)
		e := newEval(child, "periodic-job")
		tx.PutEval(e)
		eval = e.ID
		return nil
	})
	return eval, err
}
