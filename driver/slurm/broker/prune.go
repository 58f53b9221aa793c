package broker

import (
	"context"
	"strings"
	"time"
)

// tidy is how often records of jobs that slurmctld has forgotten are removed.
const tidy = 24 * time.Hour

// prune removes them at once and then every day, until the context ends.
func (s *Server) prune(ctx context.Context) {
	for {
		n, err := s.pruned(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			s.cfg.Logger.Warn("records of forgotten jobs stay", "error", err)
		case n > 0:
			s.cfg.Logger.Info("records of forgotten jobs are gone", "jobs", n)
		}
		timer := time.NewTimer(tidy)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

func (s *Server) pruned(ctx context.Context) (int, error) {
	out, err := s.read(ctx, "squeue", "-h", "-a", "-r", "-t", "all", "-O", strings.TrimSuffix(idsFormat, ","))
	if err != nil {
		return 0, err
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(out)) {
		name, err := nameOf(strings.TrimRight(line, "\n"))
		if err != nil {
			return 0, err
		}
		known[name] = true
	}
	jobs, err := s.ledger.Jobs()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, job := range jobs {
		if known[job] {
			continue
		}
		forgotten, err := s.forget(ctx, job)
		if err != nil {
			return n, err
		}
		if forgotten {
			n++
		}
	}
	return n, nil
}

// forget removes the record of a job that slurmctld does not know. The job's number may
// be another's meanwhile, who has a record only if he was asked about: so he is looked
// for, and the record removed, while no request about that number is served.
func (s *Server) forget(ctx context.Context, job string) (bool, error) {
	defer s.take(job)()
	if _, err := s.look(ctx, job); !gone(err) {
		return false, nil
	}
	return true, s.ledger.Forget(job)
}
