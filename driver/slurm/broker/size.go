package broker

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/slurmctl"
)

// Knob is what a stanza allows of an amount: Values, or where there are none what lies
// from Min to Max. The zero Knob allows nothing.
type Knob struct {
	Values   []int64
	Min, Max int64 // both ends are allowed
}

// Allows reports whether the owner's stanza permits the amount.
func (k Knob) Allows(n int64) bool {
	if len(k.Values) > 0 {
		return slices.Contains(k.Values, n)
	}
	return k.Max > 0 && k.Min <= n && n <= k.Max
}

// allowed refuses a size that the stanza does not allow and the owner did not ask for, and more
// than that unless the site says that a job may get more. An amount that is not a knob may only
// go back. Too little time would end a job for good, so that it is never less than asked for.
func (e *effect) allowed(ctx context.Context, u slurmctl.Update, after Size) error {
	asked, above := e.record.Asked, slurmctl.Within(e.s.cfg.Above, e.job.Partition)
	most, want := asked.Total(), after.Total()
	sized := (u.Memory != nil || u.Cores != nil) && want != most // memory by CPU changes with the cores
	no := func(format string, args ...any) error {
		return fmt.Errorf(format+": %w", append(args, driver.ErrDenied)...)
	}
	switch {
	// What cannot be compared: a memory or a time that its owner did not name.
	case !above && u.Memory != nil && (asked.Memory.Bytes == 0) != (after.Memory.Bytes == 0), sized && most == 0:
		return no("its owner asked for %s", memoryText(asked.Memory))
	case !above && u.TimeLimit != nil && asked.TimeLimit == 0 && after.TimeLimit != 0:
		return no("its owner named no time limit, so that %v may be more than he has", after.TimeLimit)
	case !above && after.Cores > asked.Cores:
		return no("%d cores are more than the %d that its owner asked for", after.Cores, asked.Cores)
	case !above && want > most && most > 0:
		return no("%d MiB of memory are more than the %d that its owner asked for", want>>20, most>>20)
	case !above && longer(after.TimeLimit, asked.TimeLimit):
		return no("%s of time limit are more than the %v that its owner asked for", limitText(after.TimeLimit), asked.TimeLimit)
	case after != asked && after != e.job.size && slurmctl.Says(e.job.Comment, slurmctl.Off):
		return errOff
	case u.Cores != nil && after.Cores != asked.Cores && !e.stanza.Cores.Allows(int64(after.Cores)):
		return no("its stanza does not allow %d cores, and its owner asked for %d", after.Cores, asked.Cores)
	case sized && !e.stanza.Memory.Allows(want):
		return no("its stanza does not allow %d MiB of memory, and its owner asked for %d", want>>20, most>>20)
	case u.TimeLimit != nil && asked.TimeLimit != 0 && longer(asked.TimeLimit, after.TimeLimit):
		return no("a time limit of %v is less than the %v that its owner asked for", after.TimeLimit, asked.TimeLimit)
	}
	return e.lower(ctx, after)
}

// lower refuses less memory than the job's owner asked for where a kill for it could not be
// taken back, and where one was before. What the job has already is not less.
func (e *effect) lower(ctx context.Context, after Size) error {
	if after != e.job.size {
		if err := slurmctl.ByCPU(ctx, e.s.cfg.Runner, e.job.Job, e.record.Asked, after); err != nil {
			return err
		}
	}
	have, want := e.job.size.Total(), after.Total()
	switch least := e.record.Lowered; {
	case !e.record.Less(after), have > 0 && want >= have:
		return nil
	case e.record.Rerun > 0:
		return fmt.Errorf("it was killed for less memory before, and gets no less again: %w", driver.ErrDenied)
	case least > 0 && want < least:
		return fmt.Errorf("%d MiB of memory are less than the %d that it was given before: %w", want>>20, least>>20, driver.ErrDenied)
	}
	return slurmctl.Repairable(ctx, e.s.cfg.Runner, e.job.Job, true)
}

func memoryText(m slurmctl.Memory) string {
	if m.Bytes == 0 {
		return "no amount of memory, so that no other can be compared with it"
	}
	return fmt.Sprintf("%d MiB of memory", m.Bytes>>20)
}

// longer compares time limits; 0 is none.
func longer(a, b time.Duration) bool {
	return b != 0 && (a == 0 || a > b)
}

func limitText(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return d.String()
}

// wait refuses a start time for a wait that is not of our making.
func (e *effect) wait(start *time.Duration) error {
	switch {
	case start == nil:
		return nil
	case *start < 0 || *start > Ahead:
		return fmt.Errorf("a start in %v: want at most %v: %w", *start, Ahead, driver.ErrInvalid)
	case e.job.Restarts == 0 && *start == 0 && slurmctl.Says(e.job.Comment, slurmctl.HeadStart):
		return nil // its owner submitted it so
	case e.job.Restarts == 0 && e.job.ArrayJob != "":
		return e.split(*start, time.Now())
	case !e.record.Ours(e.job.Restarts):
		return fmt.Errorf("only its owner decides when it begins: the broker did not requeue it: %w", driver.ErrDenied)
	case time.Until(e.job.Eligible) > Ahead+time.Minute:
		return fmt.Errorf("its owner has it begin at %s: %w", e.job.Eligible.Format(time.RFC3339), driver.ErrDenied)
	}
	return nil
}

// split has a task of an array wait before its first attempt. Such a task gets a number only by
// an update, and the task prolog finds its settings only by that number. So it may be made to
// wait until they are there, for Ahead in all, unless its owner makes it begin later. A wait
// that was made so may be ended.
func (e *effect) split(start time.Duration, now time.Time) error {
	since := e.record.Delayed
	switch begin := e.job.Eligible; {
	case since.IsZero() && (start == 0 || !e.job.Unnumbered()):
		return fmt.Errorf("only its owner decides when it begins: the broker did not make it wait: %w", driver.ErrDenied)
	case since.IsZero() && begin.After(now), begin.After(now.Add(Ahead + time.Minute)):
		return fmt.Errorf("its owner has it begin at %s: %w", begin.Format(time.RFC3339), driver.ErrDenied)
	case since.IsZero():
		e.record.Delayed = now.UTC()
	case start > 0 && now.Add(start).After(since.Add(Ahead)):
		return fmt.Errorf("it was made to wait at %s, and may wait for %v in all: %w", since.Format(time.RFC3339), Ahead, driver.ErrDenied)
	}
	return nil
}
