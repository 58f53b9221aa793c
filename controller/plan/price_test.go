package plan_test

import (
	"math"
	"testing"
	"time"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// row is one state and what must be decided about it.
type row struct {
	name   string
	state  func() tuning.State
	change func(*tuning.State)
	action tuning.Action
	reason tuning.Reason
	target tuning.Settings // nil: not looked at
}

func decideAll(t *testing.T, rows []row) {
	t.Helper()
	for _, c := range rows {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := c.state()
			if c.change != nil {
				c.change(&s)
			}
			d := plan.Decide(s)
			if d.Action != c.action || d.Reason != c.reason {
				t.Fatalf("got %s because %s (%v), want %s because %s", d.Action, d.Reason, d.Evidence, c.action, c.reason)
			}
			if c.target != nil && !d.Settings.Equal(c.target) {
				t.Errorf("target: got %s, want %s", d.Settings, c.target)
			}
			if d.Action == tuning.Hold && len(d.Settings) > 0 {
				t.Errorf("a hold names settings: %s", d.Settings)
			}
			if !d.At.Equal(s.Now) {
				t.Errorf("decided at %v, want %v", d.At, s.Now)
			}
		})
	}
}

func text(d tuning.Decision, name string) (string, bool) {
	for _, e := range d.Evidence {
		if e.Name == name {
			return e.Text, true
		}
	}
	return "", false
}

func number(d tuning.Decision, name string) (float64, bool) {
	for _, e := range d.Evidence {
		if e.Name == name {
			return e.Value, true
		}
	}
	return math.NaN(), false
}

func regressed(s *tuning.State) {
	s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed, LogRatio: 0.3, Low: 0.1, High: 0.5}
}

func TestTheQueueIsPartOfThePriceOfARestart(t *testing.T) {
	t.Parallel()
	two := tuning.Settings{tuning.Cores: tuning.Number(2)}
	known := func(s *tuning.State) { s.KindEffects = []tuning.Effect{effect(two, -0.5)} }
	long := func(change func(*tuning.State), wait time.Duration) func(*tuning.State) {
		return func(s *tuning.State) {
			if change != nil {
				change(s)
			}
			s.Wait = wait
		}
	}
	lost := func(s *tuning.State) {
		s.BestError, s.Trials[1].Seconds = 0.4, 1.3
	}
	elsewhere := func(s *tuning.State) {
		slow := cores(2).With("prefetch", tuning.Number(64))
		s.Current = slow
		s.Trials = append(s.Trials, tuning.Trial{Settings: slow, Epochs: 2, Seconds: 0.9})
	}
	disturbed := func(s *tuning.State) {
		s.Measured, s.Toll, s.Trials = tuning.ReasonPolluted, disturbedToll(2), s.Trials[:1]
	}
	decideAll(t, []row{
		{"a short wait changes nothing", running, long(known, time.Second), tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"a move that would save less than the queue takes is not made", running, long(known, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"nor is a probe", running, long(nil, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"nor is a doubt raised", recalled, long(nil, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"a probe that lost stays where the way back waits too long", probed, long(lost, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"an earlier probe that won is not gone back to through a long queue", probed, long(elsewhere, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"a regression is borne while the queue is long", probed, long(regressed, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"a disturbed probe is borne while the queue is long", probed, long(disturbed, time.Minute), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"what is worthless without a queue is not blamed on it", running, func(s *tuning.State) {
			known(s)
			s.RestartCost, s.Wait = 12*time.Second, time.Hour
		}, tuning.Hold, tuning.ReasonTooShort, nil},
		{"a lost quality is left however long the queue", probed, func(s *tuning.State) {
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonQualityLost, LogRatio: -0.6}
			s.Wait = time.Hour
		}, tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
		{"a pending job is in the queue anyway", pending, long(known, time.Hour), tuning.Move, tuning.ReasonRecalled, cores(2)},
	})
	crowded := func(change func(*tuning.State)) func(*tuning.State) {
		return func(s *tuning.State) {
			long(change, 0)(s)
			s.Crowded = "others wait"
		}
	}
	decideAll(t, []row{
		{"no move is made into a queue of unknown length", running, crowded(known), tuning.Hold, tuning.ReasonUnknownQueue, nil},
		{"and no probe", running, crowded(nil), tuning.Hold, tuning.ReasonUnknownQueue, nil},
		{"and no doubt is raised through it", recalled, crowded(nil), tuning.Hold, tuning.ReasonUnknownQueue, nil},
		{"a probe that lost stays where the time of the way back is unknown", probed, crowded(lost), tuning.Hold, tuning.ReasonUnknownQueue, nil},
		{"what is worthless is not blamed on a queue of unknown length", running, func(s *tuning.State) {
			crowded(known)(s)
			s.RestartCost = 12 * time.Second
		}, tuning.Hold, tuning.ReasonTooShort, nil},
		{"a lost quality is left however long the queue may be", probed, func(s *tuning.State) {
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonQualityLost, LogRatio: -0.6}
			s.Crowded = "others wait"
		}, tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
	})
	if !plan.Waits(tuning.ReasonUnknownQueue) {
		t.Error("a queue of unknown length is not waited for")
	}
	s := running()
	known(&s)
	s.Wait = time.Minute
	if wait, ok := number(plan.Decide(s), "queue_wait_seconds"); !ok || wait != 60 {
		t.Errorf("the wait in the evidence is %v (%v), want 60 s", wait, ok)
	}
}

func TestNoRestartNearAReservation(t *testing.T) {
	t.Parallel()
	soon := func(s *tuning.State) { s.ClosedIn, s.ClosedBy = 6*time.Minute, "maintenance window-7" }
	decideAll(t, []row{
		{"a reservation beyond the reserve is no concern", running, soon, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"one within cost, wait and reserve is", running, func(s *tuning.State) {
			soon(s)
			s.Wait = time.Minute
		}, tuning.Hold, tuning.ReasonNearClosing, nil},
		{"a dear restart meets it sooner", running, func(s *tuning.State) {
			soon(s)
			s.RestartCost = time.Minute
		}, tuning.Hold, tuning.ReasonNearClosing, nil},
		{"a regression is borne until it is over", probed, func(s *tuning.State) {
			regressed(s)
			s.ClosedIn = time.Minute
		}, tuning.Hold, tuning.ReasonNearClosing, nil},
		{"a pending job is changed all the same", pending, func(s *tuning.State) {
			s.KindEffects, s.ClosedIn = []tuning.Effect{effect(cores(2), -0.5)}, time.Second
		}, tuning.Move, tuning.ReasonRecalled, cores(2)},
	})
	s := running()
	soon(&s)
	s.Wait = time.Minute
	d := plan.Decide(s)
	if by, ok := text(d, "closed_by"); !ok || by != "maintenance window-7" {
		t.Errorf("closed by %q in %v", by, d.Evidence)
	}
	if !plan.Waits(tuning.ReasonNearClosing) || !plan.Waits(tuning.ReasonLongQueue) {
		t.Error("a queue and a reservation pass, so their holds must be looked at again")
	}
}

func TestASlowerSettingMustFitTheTimeLimit(t *testing.T) {
	t.Parallel()
	frugal := func(s *tuning.State) {
		s.Own, s.Current = cores(2), cores(2)
		s.Trials[0].Settings = cores(2)
		s.Policy.Objective = tuning.Energy
		e := effect(tuning.Settings{tuning.Cores: tuning.Number(1)}, -0.5)
		e.LogTime = math.Log(1.8)
		s.KindEffects = []tuning.Effect{e}
		s.Site.LimitReserve = time.Second
	}
	decideAll(t, []row{
		{"without a limit it is taken", running, frugal, tuning.Move, tuning.ReasonRecalled, cores(1)},
		{"with room enough too", running, func(s *tuning.State) { frugal(s); s.LimitLeft = 66 * time.Second }, tuning.Move, tuning.ReasonRecalled, cores(1)},
		{"where it would be killed by the limit it is not", running, func(s *tuning.State) { frugal(s); s.LimitLeft = 60 * time.Second }, tuning.Hold, tuning.ReasonSlower, nil},
		{"a probe that won on joules is not kept for its slowness either", probed, func(s *tuning.State) {
			s.Current, s.LimitLeft, s.Site.LimitReserve = cores(1), 40*time.Second, time.Second
			s.Best.Seconds = 1.2
		}, tuning.Hold, tuning.ReasonSlower, nil},
	})
}
