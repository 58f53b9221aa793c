package broker

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker/ledger"
	"pitchpipe/driver/slurm/slurmctl"
)

// lower refuses less memory than the job's owner asked for where a kill for it could not be
// taken back, and where one was before. What the job has already is not less.
func (e *effect) lower(ctx context.Context, after ledger.Size) error {
	have, want := e.job.size.Memory.Of(e.job.size.Cores), after.Memory.Of(after.Cores)
	switch least := e.record.Lowered; {
	case !e.record.Less(after), have > 0 && want >= have:
		return nil
	case e.record.Rerun > 0:
		return fmt.Errorf("it was killed for less memory before, and gets no less again: %w", driver.ErrDenied)
	case least > 0 && want < least:
		return fmt.Errorf("%d MiB of memory are less than the %d that it was given before: %w", want>>20, least>>20, driver.ErrDenied)
	}
	return slurmctl.Repairable(ctx, e.s.cfg.Runner, e.job.Job)
}

// planRerun: a job that was killed under less memory than its owner asked for, which was set
// here. It has his back before it can start, whoever asks for what next.
func planRerun(_ context.Context, e *effect) (func(context.Context) error, error) {
	switch {
	case e.job.State != "OUT_OF_MEMORY":
		return nil, fmt.Errorf("it was not killed for memory (%s): %w", e.job.State, driver.ErrConflict)
	case !e.job.Requeue:
		return nil, fmt.Errorf("its owner forbids restarts (--no-requeue): %w", driver.ErrDenied)
	case e.record.Lowered == 0 || !e.record.Less(e.job.size):
		return nil, fmt.Errorf("it had the memory that its owner asked for, and what it was killed for stands: %w", driver.ErrDenied)
	}
	after := e.record.Back(e.job.size)
	e.after, e.detail = &after, "it runs again with its owner's memory"
	e.record.Rerun = e.job.Restarts + 1
	e.record.Setting(after, time.Now())
	memory := slurmctl.Memory(after.Memory)
	return func(ctx context.Context) error {
		if err := e.s.cfg.Actor.Rerun(ctx, e.job.name); err != nil {
			return err
		}
		e.s.cfg.AfterStep("rerun-queued")
		return e.s.cfg.Actor.Update(ctx, e.job.name, slurmctl.Update{Memory: &memory})
	}, nil
}

// returned reports whether a size gives a job its owner's memory back that was killed for less
// and put back here: that is done whatever limits are used up.
func (e *effect) returned(after ledger.Size) bool {
	return e.record.Rerun > 0 && e.record.Rerun == e.job.Restarts && after == e.record.Back(e.job.size)
}
