package move

import (
	"fmt"
	"regexp"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// JudgeChange refuses what no driver could give a job.
func JudgeChange(c driver.Change) error {
	if c.Cores < 0 || c.MemoryBytes < 0 || c.TimeLimit < 0 {
		return fmt.Errorf("a change to a negative amount: %w", driver.ErrInvalid)
	}
	if err := jobfile.CheckValues(c.Env, c.Args, c.Live); err != nil {
		return fmt.Errorf("%w: %w", err, driver.ErrInvalid)
	}
	_, err := driver.EncodeSettings(1, c.Live)
	return err
}

// Judge refuses an intent for a running attempt that no driver could follow: without a
// checkpoint, with one that is not understood, or against the owner's word.
func Judge(in driver.Intent, restarts bool) error {
	switch cp := in.Checkpoint; {
	case cp == nil:
		return fmt.Errorf("a running job is not touched without a checkpoint: %w", driver.ErrUnsupported)
	case !restarts:
		return fmt.Errorf("its owner forbids restarts (--no-requeue): %w", driver.ErrDenied)
	case unix.SignalNum(cp.SignalName()) == 0:
		return fmt.Errorf("signal %q: %w", cp.Signal, driver.ErrInvalid)
	case cp.Exit == 0 && cp.Done == "":
		return fmt.Errorf("a checkpoint that names neither the exit status nor the line by which it is known: %w", driver.ErrInvalid)
	}
	if _, err := regexp.Compile(in.Checkpoint.Done); err != nil {
		return fmt.Errorf("checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	return nil
}
