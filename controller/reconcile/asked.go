package reconcile

import (
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Asked is the size that a job's owner asks his scheduler for.
type Asked struct {
	Cores       int   `json:"cores"`
	MemoryBytes int64 `json:"memory_bytes"` // 0 = no limit
}

func asked(job driver.Job) *Asked {
	return &Asked{Cores: job.Resources.Cores, MemoryBytes: job.Resources.MemoryBytes}
}

// resized has a job read anew whose owner asks for another size than when it was read, by
// his scheduler's own command: his settings are others now. What it did so far stays known.
// While an intent is under way its driver answers him first.
func (p *pass) resized() error {
	old := p.rec.Asked
	if old == nil || p.rec.Move != nil || p.rec.Phase == Seen || p.job.State.Ended() || *old == *asked(p.job) {
		return nil
	}
	p.caps.untry(p.rec.Job)
	p.rec.Final, p.rec.NoRoom, p.rec.Outcome, p.rec.Class = false, false, nil, nil
	return p.to(Seen, OwnerCame, Entry{Reason: tuning.ReasonOwnerChanged})
}
