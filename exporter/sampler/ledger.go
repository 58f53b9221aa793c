package sampler

import (
	"context"
	"fmt"
	"time"

	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
)

// ledger is what the energy accounts know between two intervals.
type ledger struct {
	book     energy.Book
	last     time.Time
	lastBusy float64
	known    bool                     // an interval was settled
	covered  float64                  // seconds that were settled
	users    map[uint32]energy.Joules // what each user's jobs were charged with
	err      string                   // why the last one was not

	perCPUSecond float64 // active joules of a busy CPU second in the last interval
	idleWatts    float64 // of the last interval
	cores        float64 // that the idle part was shared over
}

// settle charges the interval since the last call. An interval without energy is
// charged with the next one, so that nothing is lost.
func (l *ledger) settle(ctx context.Context, meter energy.Meter, now time.Time, busy float64, cores int, jobs map[attrib.Key]*job) error {
	first := l.last.IsZero()
	act := energy.Activity{Elapsed: now.Sub(l.last), Busy: max(busy-l.lastBusy, 0), Cores: cores}
	if first {
		act = energy.Activity{Cores: cores}
	}
	split, ok, err := meter.Step(ctx, act)
	if err != nil {
		l.err = fmt.Sprintf("energy: %v", err)
		return err
	}
	l.err = ""
	if first || !ok {
		l.last, l.lastBusy = now, busy
		for _, j := range jobs {
			j.settled()
		}
		return nil
	}
	seconds := act.Elapsed.Seconds()
	charged := make([]*job, 0, len(jobs))
	uses := make([]energy.Use, 0, len(jobs))
	sumCPU, sumCores := 0.0, 0.0
	for _, j := range jobs {
		if j.over {
			continue
		}
		u := j.use(l.last, now)
		sumCPU, sumCores = sumCPU+u.CPUSeconds, sumCores+u.Cores
		charged, uses = append(charged, j), append(uses, u)
	}
	for i, joules := range l.book.Add(split, act, uses) {
		charged[i].joules.Active += joules.Active
		charged[i].joules.Idle += joules.Idle
		charged[i].settled()
		l.bill(charged[i].uid, joules)
	}
	l.covered += seconds
	l.last, l.lastBusy, l.known = now, busy, true
	if work := max(act.Busy, sumCPU); work > 0 {
		l.perCPUSecond = split.Active() / work
	}
	l.idleWatts, l.cores = split.Idle/seconds, max(float64(cores), sumCores)
	return nil
}

// ahead carries a job's joules forward to now.
func (l *ledger) ahead(j *job, now time.Time) float64 {
	elapsed := max(now.Sub(later(l.last, j.first)).Seconds(), 0)
	u := j.use(later(l.last, j.first), now)
	joules := j.joules.Total() + l.perCPUSecond*u.CPUSeconds
	if l.cores > 0 {
		joules += l.idleWatts * elapsed * u.Cores / l.cores
	}
	return joules
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
