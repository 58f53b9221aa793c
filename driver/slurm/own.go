package slurm

import (
	"context"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// listenToOwner takes what the job's owner or an administrator changed for what the
// owner asks for, and tells whether the record changed. While an intent is in
// progress the sizes are ours; between its last step and the start of its attempt
// they are what the intent gave the job, and anything else is the owner's.
func (d *Driver) listenToOwner(r *Record, j parse.Job) bool {
	have := sizeOf(j)
	if r.Set == nil || r.Moving != nil {
		r.Set = &have
		return false
	}
	if parse.Ended(j.State) {
		return false
	}
	if r.Next != nil {
		return d.overrules(r, j)
	}
	if parse.Waiting(j.State) && given(r, have) {
		changed := *r.Set != have
		r.Set = &have
		return changed
	}
	set, own := *r.Set, r.Own
	if parse.Waiting(j.State) { // these cannot be changed later; an allocation may round them
		if have.Cores != set.Cores {
			own.Cores = have.Cores
		}
		if have.MemoryBytes != set.MemoryBytes || have.MemoryPerCPU != set.MemoryPerCPU {
			own.MemoryBytes, own.MemoryPerCPU = have.MemoryBytes, have.MemoryPerCPU
		}
		set.Cores, set.MemoryBytes, set.MemoryPerCPU = have.Cores, have.MemoryBytes, have.MemoryPerCPU
	}
	// A limit that nobody asked for appears at the start, and goes at a requeue.
	if asked := set.TimeLimit != 0 || parse.Waiting(j.State) && j.Restarts == 0; asked && have.TimeLimit != 0 {
		if have.TimeLimit != set.TimeLimit {
			own.TimeLimit = have.TimeLimit
		}
		set.TimeLimit = have.TimeLimit
	}
	if set == *r.Set && own == r.Own {
		return false
	}
	d.cfg.Logger.Info("the job was changed by its owner or the site", "job", string(r.Job), "before", r.Own, "after", own)
	r.Set, r.Own = &set, own
	return true
}

// raised writes down what a job that waits asks for where it will not say so as it runs.
func (d *Driver) raised(ctx context.Context, j parse.Job) (parse.Job, *Record, error) {
	r, err := d.open(ctx, j)
	if err != nil {
		return j, nil, err
	}
	return j, r, d.write(r, "raised")
}

// overrules tells whether the owner changed a job that waits for the attempt which an
// intent has set up. What he changed is his from now on, and what he left is still
// the intent's, which counts as applied. A size that slurmctld lost in a crash is that
// before the intent: it is not taken for his word.
func (d *Driver) overrules(r *Record, j parse.Job) bool {
	next, have := r.Next, sizeOf(j)
	want := next.Size
	limited := have.TimeLimit != want.TimeLimit && (want.TimeLimit != 0 || have.TimeLimit != 0 && j.Restarts == 0)
	if next.Before == nil || !parse.Waiting(j.State) || same(want, have) && !limited || unchanged(*next.Before, have) || given(r, have) && !limited {
		return false
	}
	own := r.Own
	if have.Cores != want.Cores {
		own.Cores, next.Change.Cores = have.Cores, 0
	}
	if have.MemoryBytes != want.MemoryBytes || have.MemoryPerCPU != want.MemoryPerCPU {
		own.MemoryBytes, own.MemoryPerCPU, next.Change.MemoryBytes = have.MemoryBytes, have.MemoryPerCPU, 0
	}
	if limited {
		own.TimeLimit, next.Change.TimeLimit = have.TimeLimit, 0
	}
	d.cfg.Logger.Info("the job was changed by its owner or the site", "job", string(r.Job), "before", r.Own, "after", own)
	next.Size, next.Overruled = have, true
	r.Own, r.Set = own, &have
	r.Note(next.Intent, driver.StepStarted, "its owner has changed the job since")
	return true
}

// heed takes for the owner's what he changed of a job that waited for an intent, and
// that began before the intent could answer him: sizes that are neither those before it
// nor those that it gives. Of one that waited before the intent an allocation may have
// rounded cores and memory, and a limit that nobody had asked for appears at the start.
func (m *mover) heed() {
	before, want, have := m.r.From.Before, m.want(), sizeOf(m.j)
	own := m.r.Own
	if !m.r.Moving.Queued && m.j.CPUsPerTask != 0 && have.Cores != before.Cores && have.Cores != want.Cores {
		own.Cores = have.Cores
	}
	memory := func(s Size) Size {
		return Size{MemoryBytes: s.MemoryBytes, MemoryPerCPU: s.MemoryPerCPU}
	}
	if !m.r.Moving.Queued && memory(have) != memory(before) && memory(have) != memory(want) {
		own.MemoryBytes, own.MemoryPerCPU = have.MemoryBytes, have.MemoryPerCPU
	}
	if before.TimeLimit != 0 && have.TimeLimit != 0 && have.TimeLimit != before.TimeLimit && have.TimeLimit != want.TimeLimit {
		own.TimeLimit = have.TimeLimit
	}
	if own != m.r.Own {
		m.d.cfg.Logger.Info("the job was changed by its owner or the site", "job", string(m.r.Job), "before", m.r.Own, "after", own)
		m.r.Own = own
	}
}
