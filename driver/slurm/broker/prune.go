package broker

import (
	"context"
	"errors"
	"time"

	"pitchpipe/driver"
)

// tidy is how often records of jobs that slurmctld has forgotten are removed.
const tidy = 24 * time.Hour

// every does something at once and then repeatedly, until the context ends.
func (s *Server) every(ctx context.Context, period time.Duration, what string, do func(context.Context) error) {
	for ctx.Err() == nil {
		if err := do(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("a periodic task failed; it is retried", "what", what, "error", err)
		}
		_ = driver.Pause(ctx, period) // the loop looks at ctx
	}
}

func (s *Server) pruned(ctx context.Context) error {
	rows, err := s.squeue(ctx, false)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, r := range rows {
		known[r.name] = true
	}
	jobs, err := s.ledger.List(ctx)
	if err != nil {
		return err
	}
	for _, job := range jobs {
		if known[job] {
			continue
		}
		if _, err := s.forget(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// forget removes the record of a job that slurmctld does not know. The job's number may
// be another's meanwhile, who has a record only if he was asked about: so he is looked
// for, and the record removed, while no request about that number is served.
func (s *Server) forget(ctx context.Context, job string) (bool, error) {
	defer s.jobs.Hold(job)()
	if _, err := s.look(ctx, job); !errors.Is(err, driver.ErrNotFound) {
		return false, nil
	}
	s.cfg.Logger.Info("the record of a forgotten job goes", "job", job)
	return true, s.ledger.Delete(ctx, job)
}
