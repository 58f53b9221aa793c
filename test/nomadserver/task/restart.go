package task

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hashicorp/nomad/api"
)

const withinPolicy = "Restart within policy"

// outcome is how one attempt ended. err is why it could not begin.
type outcome struct {
	code, signal int
	err          error
}

// action is what follows an attempt.
type action int

const (
	finish   action = iota // the work is done
	giveUp                 // it failed
	again                  // after a delay
	killTask               // somebody wanted it dead
)

type verdict struct {
	action action
	reason string
	delay  time.Duration
}

// policy counts the restarts of one task.
type policy struct {
	attempts        int
	interval, delay time.Duration
	mode            string
	onSuccess       bool // a service that ends is started again

	count int
	since time.Time // the interval's begin
}

// policyOf is the task's own policy, which canonicalising has merged with its group's,
// or the default of its kind of job.
func policyOf(s Spec) *policy {
	kind := api.JobTypeService
	if s.Job != nil && s.Job.Type != nil {
		kind = *s.Job.Type
	}
	batch := kind == api.JobTypeBatch || kind == api.JobTypeSysbatch
	p := &policy{attempts: 2, interval: 30 * time.Minute, delay: 15 * time.Second, mode: "fail", onSuccess: !batch, since: time.Now()}
	if batch {
		p.attempts, p.interval = 3, 24*time.Hour
	}
	for _, r := range []*api.RestartPolicy{s.Group.RestartPolicy, s.Task.RestartPolicy} {
		if r == nil {
			continue
		}
		set(&p.attempts, r.Attempts)
		set(&p.interval, r.Interval)
		set(&p.delay, r.Delay)
		set(&p.mode, r.Mode)
	}
	if l := s.Task.Lifecycle; l != nil {
		p.onSuccess = l.Sidecar && l.Hook != api.TaskLifecycleHookPoststop
	}
	return p
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// next decides what follows. Triggered means that somebody asked for a restart.
func (p *policy) next(o outcome, triggered bool, now time.Time, draw *rand.Rand) verdict {
	succeeded := o.err == nil && o.code == 0 && o.signal == 0
	switch {
	case triggered:
		return verdict{action: again}
	case p.attempts == 0 && succeeded && !p.onSuccess:
		return verdict{action: finish}
	case p.attempts == 0:
		return verdict{action: giveUp, reason: "Policy allows no restarts"}
	}
	if now.After(p.since.Add(p.interval)) {
		p.count, p.since = 0, now
	}
	p.count++
	switch {
	case o.err != nil:
		// What goes wrong before there is a process goes wrong again.
		return verdict{action: giveUp, reason: "Error was unrecoverable"}
	case succeeded && !p.onSuccess:
		return verdict{action: finish}
	case p.count > p.attempts && p.mode == "fail":
		return verdict{action: giveUp, reason: fmt.Sprintf(`Exceeded allowed attempts %d in interval %v and mode is "fail"`, p.attempts, p.interval)}
	case p.count > p.attempts:
		return verdict{action: again, reason: "Exceeded allowed attempts, applying a delay", delay: p.since.Add(p.interval).Sub(now)}
	}
	// A quarter at most is added, so that tasks that fail together do not start
	// together.
	d := p.delay
	if d > 0 {
		d += time.Duration(float64(draw.Int64N(int64(d))) * 0.25)
	}
	return verdict{action: again, reason: withinPolicy, delay: d}
}
