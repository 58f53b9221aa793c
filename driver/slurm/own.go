package slurm

import (
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// listenToOwner takes what the job's owner or an administrator changed for what the
// owner asks for, and tells whether the record changed. While an intent is in
// progress, or its attempt has not begun, the sizes are ours.
func (d *Driver) listenToOwner(r *journal.Record, j parse.Job) bool {
	have := sizeOf(j)
	if r.Set == nil || r.Moving != nil || r.Next != nil {
		r.Set = &have
		return false
	}
	if ended(j.State) {
		return false
	}
	set, own := *r.Set, r.Own
	if waiting(j.State) { // these cannot be changed later; an allocation may round them
		if have.Cores != set.Cores {
			own.Cores = have.Cores
		}
		if have.MemoryBytes != set.MemoryBytes || have.MemoryPerCPU != set.MemoryPerCPU {
			own.MemoryBytes, own.MemoryPerCPU = have.MemoryBytes, have.MemoryPerCPU
		}
		set.Cores, set.MemoryBytes, set.MemoryPerCPU = have.Cores, have.MemoryBytes, have.MemoryPerCPU
	}
	// A limit that nobody asked for appears at the start, and goes at a requeue.
	if asked := set.TimeLimit != 0 || waiting(j.State) && j.Restarts == 0; asked && have.TimeLimit != 0 {
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
