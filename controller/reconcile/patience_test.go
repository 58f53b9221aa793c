package reconcile

import (
	"testing"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

func TestTheLongerAJobHasWaitedTheLessOftenItIsDecidedAbout(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for waited, want := range map[time.Duration]time.Duration{
		-time.Second:     500 * time.Millisecond, // its clock is another's
		0:                500 * time.Millisecond,
		4 * time.Second:  500 * time.Millisecond,
		20 * time.Second: 2 * time.Second,
		5 * time.Minute:  30 * time.Second,
		10 * time.Hour:   time.Minute,
	} {
		p := reconciliation{Loop: New(Config{}), now: now, job: driver.Job{Submitted: now.Add(-waited)}}
		if got := p.patience(); got != want {
			t.Errorf("after %v: %v, want %v", waited, got, want)
		}
	}
	p := reconciliation{Loop: New(Config{Tick: time.Hour}), now: now, job: driver.Job{Submitted: now.Add(-24 * time.Hour)}}
	if got := p.patience(); got != time.Hour {
		t.Errorf("with a tick of an hour: %v, want no more often than that", got)
	}
}

func TestARequeuedJobIsOffAsItWasFirstSubmitted(t *testing.T) {
	t.Parallel()
	first := time.Unix(1000, 0)
	gate := func(j driver.Job) tuning.Reason {
		if j.Submitted.Equal(first) {
			return tuning.ReasonOff
		}
		return tuning.ReasonNone
	}
	p := reconciliation{
		Loop: New(Config{Services: Services{Gate: gate}}), rec: &Record{Identity: Identity{Submitted: first}}, job: driver.Job{Submitted: first.Add(time.Hour)},
	}
	if got := p.gate(); got != tuning.ReasonOff {
		t.Errorf("gate %q, want %q", got, tuning.ReasonOff)
	}
}
