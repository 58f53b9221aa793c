package reconcile

import (
	"context"
	"errors"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// outlookAge is how long an answer of the scheduler is reused: a job that only the queue
// holds back would ask again at every look.
const outlookAge = 10 * time.Second

// outlook is an answer of the scheduler.
type outlook struct {
	driver.Outlook
	at time.Time
}

// foresee adds to the state what a restart would meet now. What is unknown is nothing to wait
// for, unless the scheduler says that others wait for the same room.
func (p *reconciliation) foresee(ctx context.Context, s *tuning.State) {
	p.mu.Lock()
	o, asked := p.outlooks[p.rec.Job]
	p.mu.Unlock()
	if !asked || p.now.Sub(o.at) >= outlookAge {
		answer, err := p.services.Outlook(ctx, p.rec.Job)
		if err != nil {
			answer = driver.Outlook{}
			if !errors.Is(err, driver.ErrUnsupported) {
				p.cfg.Log.Warn("what a restart would meet is unknown", "job", p.rec.Job, "error", err)
			}
		}
		o = outlook{answer, p.now}
		p.mu.Lock()
		p.outlooks[p.rec.Job] = o
		p.mu.Unlock()
	}
	if o.Wait != nil {
		s.Wait = *o.Wait
	}
	s.Crowded = o.Crowded
	if !o.Closed.IsZero() {
		s.ClosedIn, s.ClosedBy = max(time.Nanosecond, o.Closed.Sub(p.now)), o.ClosedBy
	}
}
