package broker

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker/ledger"
	"pitchpipe/driver/slurm/slurmctl"
)

// ceiling refuses what is more than the job's owner asked for, but where the site says
// that a job may get more.
func (e *effect) ceiling(u slurmctl.Update, after ledger.Size) error {
	asked := e.record.Asked
	if e.s.above(e.job.Partition) {
		return nil
	}
	if err := odd(u, asked, after); err != nil {
		return err
	}
	more := func(what string, have, want any) error {
		return fmt.Errorf("%v %s are more than the %v that its owner asked for: %w", want, what, have, driver.ErrDenied)
	}
	switch most, want := asked.Memory.Of(asked.Cores), after.Memory.Of(after.Cores); {
	case after.Cores > asked.Cores:
		return more("cores", asked.Cores, after.Cores)
	case want > most && most > 0:
		return more("MiB of memory", most>>20, want>>20)
	case longer(after.TimeLimit, asked.TimeLimit):
		return more("of time limit", asked.TimeLimit, limitText(after.TimeLimit))
	}
	return nil
}

// odd refuses changes that cannot be compared: from a memory or a time that the owner did
// not name.
func odd(u slurmctl.Update, asked, after ledger.Size) error {
	switch {
	case u.Memory != nil && (asked.Memory.Bytes == 0) != (after.Memory.Bytes == 0):
		return fmt.Errorf("its owner asked for %s: %w", memoryText(asked.Memory), driver.ErrDenied)
	case u.TimeLimit != nil && asked.TimeLimit == 0 && after.TimeLimit != 0:
		return fmt.Errorf("its owner named no time limit, so that %v may be more than he has: %w", after.TimeLimit, driver.ErrDenied)
	}
	return nil
}

func memoryText(m ledger.Memory) string {
	if m.Bytes == 0 {
		return "no amount of memory, so that no other can be compared with it"
	}
	return fmt.Sprintf("%d MiB of memory", m.Bytes>>20)
}

// longer compares time limits, of which 0 is none.
func longer(a, b time.Duration) bool {
	return b != 0 && (a == 0 || a > b)
}

func limitText(d time.Duration) string {
	if d == 0 {
		return "unlimited"
	}
	return d.String()
}

// above reports whether a job may get more than its owner asked for in each of its
// partitions.
func (s *Server) above(partitions string) bool {
	for p := range strings.SplitSeq(partitions, ",") {
		if !slices.Contains(s.cfg.Above, p) {
			return false
		}
	}
	return true
}

// wait refuses a start time for a wait that is not of our making.
func (e *effect) wait(start *time.Duration) error {
	switch {
	case start == nil:
		return nil
	case *start < 0 || *start > e.s.cfg.Ahead:
		return fmt.Errorf("a start in %v: want at most %v: %w", *start, e.s.cfg.Ahead, driver.ErrInvalid)
	case e.job.Restarts == 0 && *start == 0 && slurmctl.Says(e.job.Comment, slurmctl.HeadStart):
		return nil // its owner submitted it so
	case e.job.Restarts == 0 && e.job.ArrayJob != "":
		return e.split(*start, time.Now())
	case !e.record.Ours(e.job.Restarts):
		return fmt.Errorf("when it begins is its owner's word: we did not put it back into the queue: %w", driver.ErrDenied)
	case time.Until(e.job.Eligible) > e.s.cfg.Ahead+time.Minute:
		return fmt.Errorf("its owner has it begin at %s: %w", e.job.Eligible.Format(time.RFC3339), driver.ErrDenied)
	}
	return nil
}

// split has a task of an array wait before its first attempt. Only by an update does such a
// task get a number, and only by that does the task prolog find its settings: so it may
// be made to wait until they are there, for Config.Ahead in all, unless its owner has it
// begin later. A wait that was made so may be ended.
func (e *effect) split(start time.Duration, now time.Time) error {
	ahead, since := e.s.cfg.Ahead, e.record.Delayed
	switch begin := e.job.Eligible; {
	case since.IsZero() && (start == 0 || !e.job.Unnumbered()):
		return fmt.Errorf("when it begins is its owner's word: we did not make it wait: %w", driver.ErrDenied)
	case since.IsZero() && begin.After(now), begin.After(now.Add(ahead + time.Minute)):
		return fmt.Errorf("its owner has it begin at %s: %w", begin.Format(time.RFC3339), driver.ErrDenied)
	case since.IsZero():
		e.record.Delayed = now.UTC()
	case start > 0 && now.Add(start).After(since.Add(ahead)):
		return fmt.Errorf("it was made to wait at %s, and may wait for %v in all: %w", since.Format(time.RFC3339), ahead, driver.ErrDenied)
	}
	return nil
}
