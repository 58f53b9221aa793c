package slurm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/act"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// remembered is for how long slurmctld must remember an ended job at least, where one that
// is killed for memory is to run again: so long a controller may be away.
const remembered = 2 * time.Minute

// repairs reports whether this process can have a job run again that has ended.
func (d *Driver) repairs() bool {
	_, ok := d.cfg.Actor.(act.Rerunner)
	return ok
}

// repairable refuses less memory where a kill for it could not be taken back, or others
// would have been told of it: a dependant of a job that failed never runs, or has run.
func (d *Driver) repairable(ctx context.Context, j parse.Job) error {
	switch {
	case !d.repairs():
		return fmt.Errorf("a kill for memory ends a job for good here, so that its limit is not lowered: %w", driver.ErrUnsupported)
	case !j.Requeue:
		return fmt.Errorf("its owner forbids restarts (--no-requeue), and a kill for memory would need one: %w", driver.ErrDenied)
	}
	s, err := readSite(ctx, d.cfg.Commands)
	if err != nil {
		return err
	}
	if s.age != 0 && s.age < remembered {
		return fmt.Errorf("slurmctld forgets ended jobs too soon (MinJobAge) for a kill for memory to be taken back: %w", driver.ErrUnsupported)
	}
	out, err := d.ask(ctx, "squeue", "-h", "-a", "-r", "-t", "PD", "-o", "%i %E")
	if err != nil {
		return fmt.Errorf("who depends on it: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		id, on, _ := strings.Cut(strings.TrimSpace(line), " ")
		if slices.ContainsFunc(strings.FieldsFunc(on, func(c rune) bool { return (c < '0' || c > '9') && c != '_' }), func(n string) bool {
			of, _, _ := strings.Cut(n, "_")
			return of == j.ID || j.ArrayJob != "" && of == j.ArrayJob
		}) {
			return fmt.Errorf("job %s depends on it, and would be told of a kill for memory: %w", id, driver.ErrUnsupported)
		}
	}
	return nil
}

// returnID names the intent that takes back what an attempt was killed for.
func returnID(attempt int) string { return fmt.Sprintf("memory/%d", attempt) }

// killed reports whether a job was killed for memory under a change and is to run again:
// Slurm has ended it, nobody depended on it when it was changed, and nobody was told of its
// end by us.
func (d *Driver) killed(j parse.Job, r *journal.Record) bool {
	n := len(r.Attempts)
	if j.State != "OUT_OF_MEMORY" || !d.repairs() || !r.Repairs || !j.Requeue || observedOnly(j) != "" || r.Last != nil || n == 0 || n != j.Restarts+1 {
		return false
	}
	_, given := r.Closed[returnID(n)]
	return !given && !r.Attempts[n-1].Change.Empty()
}

// takeBack makes it durable that the job runs again: with its owner's memory where the
// change had less, else under all of its owner's settings.
func takeBack(j parse.Job, r *journal.Record) {
	last := r.Attempts[len(r.Attempts)-1]
	left := last.Change
	if own := total(r.Own); left.MemoryBytes > 0 && (own == 0 || left.MemoryBytes < own) {
		left.MemoryBytes = 0
	} else {
		left = driver.Change{}
	}
	if r.Closed == nil {
		r.Closed = map[string]driver.StepKind{}
	}
	if last.Intent != "" {
		r.Closed[last.Intent] = driver.StepStarted
	}
	r.Node = j.Node
	r.Moving = &journal.Moving{
		Intent: driver.Intent{ID: returnID(last.Number), Job: r.Job, Attempt: last.Number, Change: left, Note: "killed for memory under changed settings"},
		Phase:  journal.Stopping, Restarts: j.Restarts, Before: sizeOf(j), Memory: true,
	}
}

// giveBackMemory takes the next step of the return of memory; whoever looks at the job does
// so, for nobody else has it in progress.
func (d *Driver) giveBackMemory(ctx context.Context, j parse.Job, r *journal.Record) error {
	m := move{d: d, j: j, r: r}
	step, err := m.proceed(ctx)
	_, err = m.denied(ctx, step, err)
	switch {
	case errors.Is(err, driver.ErrTransient), errors.Is(err, driver.ErrUnknown):
		return nil // whoever looks next tries again
	case err != nil && r.Moving == nil:
		d.cfg.Logger.Warn("a job that was killed for memory under changed settings does not run again", "job", string(r.Job), "error", err)
		return nil
	}
	return err
}
