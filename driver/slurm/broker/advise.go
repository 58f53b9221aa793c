package broker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// maxNice is the most that advice lowers a job's priority.
const maxNice = 10_000

// planAdvise: another time limit up to the owner's, and another nice value from the owner's on.
// What the advice leaves out is the owner's again.
func planAdvise(ctx context.Context, e *effect) error {
	a := e.req.Advice
	if a == nil || a.TimeLimit < 0 || a.TimeLimit%time.Minute != 0 || a.Nice < 0 || a.Nice > maxNice {
		return fmt.Errorf("want a time limit of whole minutes, and a nice value from 0 to %d: %w", maxNice, driver.ErrInvalid)
	}
	var u slurmctl.Update
	after := e.job.size
	if after.TimeLimit = a.TimeLimit; a.TimeLimit == 0 {
		after.TimeLimit = e.record.Asked.TimeLimit
	}
	if after != e.job.size {
		if longer(after.TimeLimit, e.record.Asked.TimeLimit) {
			return fmt.Errorf("%v of time limit are more than the %v that its owner asked for: %w", after.TimeLimit, e.record.Asked.TimeLimit, driver.ErrDenied)
		}
		if longer(e.job.size.TimeLimit, after.TimeLimit) {
			if err := e.shorten(ctx, after); err != nil {
				return err
			}
			e.record.Short = after.TimeLimit
		}
		u.TimeLimit, e.after = &after.TimeLimit, &after
		e.record.Setting(after, time.Now())
	}
	if err := e.renice(ctx, a.Nice, &u); err != nil {
		return err
	}
	e.update(u)
	return nil
}

// advisable refuses what takes something away from a job where the site or its owner does not let
// it, or where the tuner changes the job by its stanza.
func (e *effect) advisable(ctx context.Context) error {
	switch {
	case !parse.Waiting(e.job.State):
		return fmt.Errorf("it does not wait (%s), and a running job may only get more time: %w", e.job.State, driver.ErrConflict)
	case !slurmctl.Within(e.s.cfg.Advice, e.job.Partition):
		return fmt.Errorf("the site allows no advice in partition %s (broker.advice): %w", e.job.Partition, driver.ErrDenied)
	case slurmctl.Says(e.job.Comment, slurmctl.Off):
		return errOff
	}
	switch st, err := e.s.stanza(ctx, e.job); {
	case err == nil && st.Apply:
		return fmt.Errorf("its stanza has it tuned (mode=apply): %w", driver.ErrDenied)
	case err != nil && !errors.Is(err, driver.ErrDenied): // else it has none
		return fmt.Errorf("whether its stanza has it tuned is not known: %w", err)
	}
	return nil
}

// shorten refuses a lower time limit where a job that outlives it might be lost, or where it
// would get round a limit of the site.
func (e *effect) shorten(ctx context.Context, after Size) error {
	if err := e.advisable(ctx); err != nil {
		return err
	}
	switch asked := e.record.Asked.TimeLimit; {
	case asked == 0:
		return fmt.Errorf("its owner named no time limit: %w", driver.ErrDenied)
	case e.record.Rerun > 0:
		return fmt.Errorf("it ran into a lower limit before, and keeps its owner's: %w", driver.ErrDenied)
	case strings.HasPrefix(e.job.Reason, "Assoc") || strings.HasPrefix(e.job.Reason, "QOS") || strings.Contains(e.job.Reason, "Limit"):
		return fmt.Errorf("it waits for a limit of the site (%s), from which an update would free it: %w", e.job.Reason, driver.ErrDenied)
	}
	if err := slurmctl.Repairable(ctx, e.s.cfg.Runner, e.job.Job, true); err != nil {
		return err
	}
	if !e.job.several() {
		return e.withinLimits(ctx, slurmctl.Update{TimeLimit: &after.TimeLimit}, after)
	}
	conf, err := slurmctl.Config(ctx, e.s.cfg.Runner)
	if err != nil {
		return err
	}
	enforced, err := limited(conf)
	if enforced {
		err = fmt.Errorf("what a job of several nodes counts for in limits is not known: %w", driver.ErrUnsupported)
	}
	return err
}

// renice adds to the update a nice value that is so much above the owner's. One that was not
// set here is the owner's.
func (e *effect) renice(ctx context.Context, above int, u *slurmctl.Update) error {
	if niced := e.record.Niced; niced == nil || *niced != e.job.nice {
		if above == 0 {
			return nil
		}
		e.record.Nice = e.job.nice
	}
	want := e.record.Nice + above
	if want == e.job.nice || !parse.Waiting(e.job.State) {
		return nil
	}
	if want > e.job.nice {
		if err := e.advisable(ctx); err != nil {
			return err
		}
	}
	e.detail = fmt.Sprintf("nice %d to %d", e.job.nice, want)
	e.record.Niced, u.Nice = &want, &want
	return nil
}

// planOverrun: a job that ran into a limit that was lowered here, since no one gave the owner's
// back in time, runs again with that.
func planOverrun(_ context.Context, e *effect) error {
	after, gap := e.job.size, slurmctl.Gap // it has ended at the latest now
	after.TimeLimit = e.record.Asked.TimeLimit
	less := e.record.Short != 0 && longer(after.TimeLimit, e.job.size.TimeLimit)
	return e.rerun("TIMEOUT", "time", less, after, slurmctl.Update{TimeLimit: &after.TimeLimit, Start: &gap})
}

// extend looks once at the jobs that are about to meet a limit that was lowered here, or did, and
// gives them their owners', whether or not a controller lives.
func (s *Server) extend(ctx context.Context) error {
	rows, err := s.squeue(ctx, false)
	if err != nil {
		return err
	}
	for _, r := range rows {
		_, limit, err := r.amounts()
		left, bad := parse.Limit("TimeLeft", r.is["TimeLeft"]) // none is left where it is INVALID
		verb := map[string]string{"RUNNING": verbAdvise, "TIMEOUT": verbOverrun}[r.is["State"]]
		if err := errors.Join(err, bad); err != nil || verb == "" || limit == 0 || verb == verbAdvise && left > s.cfg.Raise {
			continue
		}
		known, ok, err := s.ledger.load(r.name)
		if ok && known.UID == r.uid && known.Short != 0 && longer(known.Asked.TimeLimit, limit) {
			err = s.effect(ctx, uint32(os.Geteuid()), verb, request{Job: r.name, Advice: &driver.Advice{}}) //nolint:gosec // a uid
		}
		if err != nil {
			s.cfg.Logger.Error("a job does not get its owner's time limit back", "job", r.name, "error", err)
		}
	}
	return nil
}
