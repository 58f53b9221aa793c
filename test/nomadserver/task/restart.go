package task

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/nomad/api"
)

// outcome is how one attempt ended; err is why it could not begin.
type outcome struct {
	code, signal int
	err          error
}

func (o outcome) succeeded() bool { return o.err == nil && o.code == 0 && o.signal == 0 }

// policy counts the restarts of one task.
type policy struct {
	attempts        int
	interval, delay time.Duration
	onSuccess       bool // a service that ends is started again

	count int
	since time.Time // the begin of the interval
}

// newPolicy reads the task's own policy, which canonicalising has merged with its group's.
// Its mode is always "fail".
func newPolicy(s Spec) *policy {
	p := s.Task.RestartPolicy
	return &policy{
		attempts: *p.Attempts, interval: *p.Interval, delay: *p.Delay, onSuccess: *s.Alloc.Job.Type != api.JobTypeBatch, since: time.Now(),
	}
}

// next says whether the task starts again, after which delay and why; without a reason
// its work is done.
func (p *policy) next(o outcome, now time.Time) (again bool, delay time.Duration, reason string) {
	if now.After(p.since.Add(p.interval)) {
		p.count, p.since = 0, now
	}
	p.count++
	switch {
	case o.succeeded() && !p.onSuccess:
		return false, 0, ""
	case p.attempts == 0:
		return false, 0, "Policy allows no restarts"
	case o.err != nil:
		// What goes wrong before there is a process goes wrong again.
		return false, 0, "Error was unrecoverable"
	case p.count > p.attempts:
		return false, 0, fmt.Sprintf(`Exceeded allowed attempts %d in interval %v and mode is "fail"`, p.attempts, p.interval)
	}
	// Up to a quarter more, so that tasks that fail together do not start together.
	return true, p.delay + rand.N(p.delay/4+1), "Restart within policy" //nolint:gosec // a jitter
}
