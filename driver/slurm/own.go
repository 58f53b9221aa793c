package slurm

import (
	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// listenToOwner takes what the job's owner or an administrator changed for what the
// owner asks for. While an intent is in progress the sizes are ours; between its last step
// and the start of its attempt they are what the intent gave the job, and anything else is
// the owner's.
func (d *Driver) listenToOwner(r *Record, j parse.Job) {
	have, waits := slurmctl.SizeOf(j), parse.Waiting(j.State)
	switch {
	case r.Set == nil, r.Moving != nil, r.Next == nil && waits && given(r, have):
		r.Set = &have
		return
	case parse.Ended(j.State):
		return
	case r.Next != nil:
		d.overrule(r, j)
		return
	}
	set, now := *r.Set, have
	if !waits { // these cannot be changed later; an allocation may round them
		now.Cores, now.Memory = set.Cores, set.Memory
	}
	// A limit that no one asked for appears at the start, and goes at a requeue.
	if asked := set.TimeLimit != 0 || waits && j.Restarts == 0; !asked || have.TimeLimit == 0 {
		now.TimeLimit = set.TimeLimit
	}
	r.Set = &now
	d.owns(r, r.Own.Take(now, set))
}

// owns notes what the owner asks for from now on.
func (d *Driver) owns(r *Record, own Size) {
	if own != r.Own {
		d.cfg.Logger.Info("the job was changed by its owner or the site", "job", string(r.Job), "before", r.Own, "after", own)
		r.Own = own
	}
}

// overrule is for a job that waits for the attempt which an intent has set up. What the
// owner changed of it is his from now on, and what he left is still
// the intent's, which counts as applied. A size that slurmctld lost in a crash is that
// before the intent: it is not taken for his word.
func (d *Driver) overrule(r *Record, j parse.Job) {
	next, have := r.Next, slurmctl.SizeOf(j)
	want, now := next.Size, have
	limited := have.TimeLimit != want.TimeLimit && (want.TimeLimit != 0 || have.TimeLimit != 0 && j.Restarts == 0)
	if next.Before == nil || !parse.Waiting(j.State) || same(want, have) && !limited || unchanged(*next.Before, have) || given(r, have) && !limited {
		return
	}
	if limited {
		next.Change.TimeLimit = 0
	} else {
		now.TimeLimit = want.TimeLimit
	}
	if have.Cores != want.Cores {
		next.Change.Cores = 0
	}
	if have.Memory != want.Memory {
		next.Change.MemoryBytes = 0
	}
	d.owns(r, r.Own.Take(now, want))
	next.Size, next.Overruled, r.Set = have, true, &have
	r.Note(next.Intent, driver.StepStarted, "its owner has changed the job since")
}

// heed finds what the owner changed of a job that waited for an intent and began before
// the intent could answer him: sizes that are not those before the intent or those that it
// gives. Of one that waited before the intent an allocation may have rounded cores and
// memory, and a limit that no one had asked for appears at the start.
func (m *mover) heed() {
	before, want, now := m.r.From.Before, m.want(), slurmctl.SizeOf(m.j)
	if m.r.Moving.Queued {
		now.Memory = want.Memory
	}
	if m.r.Moving.Queued || m.j.CPUsPerTask == 0 {
		now.Cores = want.Cores
	}
	if before.TimeLimit == 0 || now.TimeLimit == 0 {
		now.TimeLimit = want.TimeLimit
	}
	m.d.owns(m.r, m.r.Own.Take(now, before, want))
}
