package tuning_test

import (
	"math"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

// lane lays epochs one after the other.
type lane struct {
	at     time.Time
	epochs []tuning.Epoch
}

func (l *lane) wait(seconds float64) { l.at = l.at.Add(time.Duration(seconds * float64(time.Second))) }

func (l *lane) run(attempt, cores int, seconds float64, change func(*tuning.Epoch)) {
	e := epoch(cores, seconds, 0, "")
	e.Attempt, e.Number, e.Start = attempt, len(l.epochs)+1, l.at
	l.wait(seconds)
	e.End = l.at
	if change != nil {
		change(&e)
	}
	l.epochs = append(l.epochs, e)
}

// What its scheduler suspends is no slower for that.
func TestSuspendedTimeIsNoToll(t *testing.T) {
	t.Parallel()
	l := lane{at: time.Unix(0, 0)}
	for range 3 {
		l.run(1, 1, 60, nil)
	}
	from := l.at
	l.wait(3600)
	l.run(2, 2, 3600, nil)
	c := tuning.Course{
		Policy: tuning.DefaultPolicy(), Own: l.epochs[0].Settings, Current: l.epochs[3].Settings, Attempt: 2, Reference: tuning.Trial{Epochs: 3, Seconds: 60},
		Epochs: l.epochs, Ours: func(attempt int) bool { return attempt > 1 }, Started: from, Heard: from, Running: true, Now: l.at.Add(time.Hour),
	}
	if toll := c.Toll(); toll.Harm < 100 {
		t.Errorf("harm %g of a job that ran, want more than 100", toll.Harm)
	}
	c.Still = []tuning.Span{{From: from, To: c.Now}}
	if toll := c.Toll(); toll.Harm != 0 || toll.Seconds != 0 || toll.Present != (tuning.Present{}) {
		t.Errorf("%+v of a job that was suspended, want nothing", toll)
	}
}

func TestWorkThatARestartEndedIsLost(t *testing.T) {
	t.Parallel()
	l := lane{at: time.Unix(0, 0)}
	l.run(1, 2, 60, nil)
	l.run(1, 2, 60, nil)
	c := tuning.Course{
		Policy: tuning.DefaultPolicy(), Own: l.epochs[0].Settings, Attempt: 2, Reference: tuning.Trial{Epochs: 2, Seconds: 60},
		Epochs: l.epochs, Ours: func(int) bool { return true }, Now: l.at.Add(30 * time.Second), Lost: true,
	}
	if toll := c.Toll(); toll.Seconds != 150 || toll.Harm != 2.5 || toll.Epochs != 2.5 {
		t.Errorf("%+v, want all 150 seconds", toll)
	}
}

func TestAfterASuspendedEpochTheTollGoesOn(t *testing.T) {
	t.Parallel()
	l := lane{at: time.Unix(0, 0)}
	l.run(1, 1, 60, nil)
	l.run(1, 1, 3660, nil)
	suspended := []tuning.Span{{From: l.at.Add(-time.Hour), To: l.at.Add(-time.Minute)}}
	l.wait(120)
	l.run(2, 2, 3660, nil)
	suspended = append(suspended, tuning.Span{From: l.at.Add(-time.Hour), To: l.at.Add(-time.Minute)})
	toll := tuning.Course{
		Policy: tuning.DefaultPolicy(), Own: l.epochs[0].Settings, Current: l.epochs[2].Settings, Attempt: 2, Reference: tuning.Trial{Epochs: 1, Seconds: 60},
		Epochs: l.epochs, Still: suspended, Ours: func(attempt int) bool { return attempt > 1 }, Started: l.epochs[2].Start, Heard: l.epochs[2].Start, Running: true, Now: l.at.Add(20 * time.Minute),
	}.Toll()
	if toll.Seconds != 120+1140 || toll.Present.Running != 1200 {
		t.Errorf("%+v, want 120 s of the restart, and 1200 s of the running epoch", toll)
	}
}

func TestTheTollCountsEveryEpochAndEveryGap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		current int
		attempt int
		running float64 // seconds since the last mark, 0 = nothing runs
		course  func(l *lane)
		seconds float64
		epochs  float64
		harm    float64
		present tuning.Present
	}{
		{"a job under its owner's settings has no toll", 1, 1, 5, func(l *lane) { l.run(1, 1, 2, nil); l.run(1, 1, 9, nil) }, 0, 0, 0, tuning.Present{}},
		{"the start of a program that begins under another setting is its own", 2, 1, 0, func(l *lane) {
			l.run(1, 2, 9, nil)
			l.run(1, 2, 3, nil)
			l.run(1, 2, 3, nil)
		}, 3, 1.5, 1.5, tuning.Present{Epochs: 1.5, Done: 3, Seconds: 9}},
		{"of one epoch alone nothing more is known", 2, 1, 0, func(l *lane) { l.run(1, 2, 9, nil) }, 0, 0, 0, tuning.Present{Done: 1, Seconds: 2}},
		{"a probe costs its restart and what its epochs take longer", 2, 2, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.wait(3)
			l.run(2, 2, 5, nil)
		}, 3 + 3, 3, 3, tuning.Present{Epochs: 1.5, Done: 1, Seconds: 5}},
		{"what a setting saves is no harm, and pays for none", 4, 3, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.wait(1)
			l.run(2, 2, 4, nil)
			l.wait(1)
			l.run(3, 4, 1, nil)
		}, 1 + 2 + 1 - 1, 0.5 + 1 + 0.5 - 0.5, 2, tuning.Present{Epochs: -0.5, Done: 1, Seconds: 1}},
		{"disturbed epochs count", 2, 2, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.run(2, 2, 18, func(e *tuning.Epoch) { e.Polluted = true })
		}, 16, 8, 8, tuning.Present{Epochs: 8, Done: 1, Disturbed: 1, Seconds: 18}},
		{"the running epoch counts once it takes longer", 2, 2, 6, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.run(2, 2, 2, nil)
		}, 4, 2, 2, tuning.Present{Epochs: 2, Done: 1, Seconds: 2, Running: 6}},
		{"and while it does not, it is no saving", 2, 2, 1, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.run(2, 2, 2, nil)
		}, 0, 0, 0, tuning.Present{Done: 1, Seconds: 2, Running: 1}},
		{"an epoch that was cut did no work", 1, 3, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.run(2, 2, 6, func(e *tuning.Epoch) { e.Cut = true })
			l.wait(1)
			l.run(3, 1, 2, nil)
		}, 6 + 1, 3.5, 3.5, tuning.Present{}},
		{"the first epoch back home loads what was saved", 1, 3, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.run(2, 2, 2, nil)
			l.run(3, 1, 3, nil)
			l.run(3, 1, 9, nil) // and this one is slow by itself
		}, 1, 0.5, 0.5, tuning.Present{}},
		{"what is done again after our restart is lost", 1, 3, 0, func(l *lane) {
			again := func(e *tuning.Epoch) { e.Number-- }
			l.run(2, 2, 2, nil)
			l.run(2, 2, 2, nil)
			l.wait(1)
			l.run(3, 1, 2, again) // its second epoch
			l.run(3, 1, 2, again)
		}, 1 + 2, 1.5, 1.5, tuning.Present{}},
		{"a restart that the scheduler made is not ours", 1, 9, 0, func(l *lane) {
			l.run(1, 1, 2, nil)
			l.wait(100)
			l.run(9, 1, 2, nil)
		}, 0, 0, 0, tuning.Present{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l := &lane{at: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)}
			c.course(l)
			started := l.at
			l.wait(c.running)
			toll := tuning.Course{
				Policy: tuning.DefaultPolicy(), Own: tuning.Settings{"cores": tuning.Number(1)}, Attempt: c.attempt,
				Current:   tuning.Settings{"cores": tuning.Number(float64(c.current))},
				Reference: tuning.Trial{Epochs: 1, Seconds: 2, Reference: true}, Epochs: l.epochs,
				Ours: func(attempt int) bool { return attempt > 1 && attempt < 9 }, Started: started, Running: c.running > 0, Heard: started, Now: l.at,
			}.Toll()
			near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
			p := toll.Present
			if !near(toll.Seconds, c.seconds) || !near(toll.Epochs, c.epochs) || !near(toll.Harm, c.harm) || toll.Joules != nil {
				t.Errorf("the toll is %+v", toll)
			}
			if !near(p.Epochs, c.present.Epochs) || p.Done != c.present.Done || p.Disturbed != c.present.Disturbed ||
				!near(p.Seconds, c.present.Seconds) || !near(p.Running, c.present.Running) {
				t.Errorf("the present attempt is %+v, want %+v", p, c.present)
			}
		})
	}
	at := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	for heard, running := range map[time.Time]float64{{}: 0, at.Add(-time.Minute): 12, at.Add(10 * time.Second): 2} {
		toll := tuning.Course{
			Policy: tuning.DefaultPolicy(), Own: tuning.Settings{"cores": tuning.Number(1)}, Attempt: 2, Current: tuning.Settings{"cores": tuning.Number(2)},
			Reference: tuning.Trial{Epochs: 1, Seconds: 1, Reference: true}, Started: at, Running: true, Heard: heard, Now: at.Add(12 * time.Second),
		}.Toll()
		if toll.Present.Running != running {
			t.Errorf("heard since %v: an epoch has run for %g s, want %g", heard, toll.Present.Running, running)
		}
	}
	var buffered []tuning.Epoch // ten to a report
	for n := range 30 {
		e := tuning.Epoch{Number: n + 1, Attempt: 1, Start: at.Add(time.Duration(n-40) * time.Second), Settings: tuning.Settings{tuning.Cores: tuning.Number(2)}, Inner: n%10 < 9}
		if !e.Inner {
			e.Together = 10
		}
		e.End = e.Start.Add(time.Second)
		buffered = append(buffered, e)
	}
	last := tuning.Epoch{Number: 32, Attempt: 1, Start: at.Add(-10 * time.Second), End: at.Add(-9 * time.Second), Settings: buffered[0].Settings, Together: 2}
	buffered = append(buffered[:10:10], last) // what was left as the attempt ended
	for silent, want := range map[time.Duration]float64{8 * time.Second: 0.8, 30 * time.Second: 3} {
		p := tuning.Course{
			Own: buffered[0].Settings, Current: tuning.Settings{tuning.Cores: tuning.Number(1)}, Attempt: 2, Epochs: buffered,
			Reference: tuning.Trial{Epochs: 1, Seconds: 1, Reference: true}, Ours: func(int) bool { return true },
			Started: at, Running: true, Heard: at, Now: at.Add(silent),
		}.Toll()
		if p.Pace() != want || (p.Present.Epochs > 0) != (want > 1) {
			t.Errorf("silent for %v where ten epochs of a second are reported together: pace %g, %+v; want %g", silent, p.Pace(), p.Present, want)
		}
	}
	priced, l := tuning.DefaultPolicy(), lane{at: at} // for GPUs alone, which it has none of
	priced.Objective, priced.Tariff = tuning.Cost, tuning.Tariff{GPUHour: 2}
	l.run(2, 2, 5, nil)
	if toll := (tuning.Course{Policy: priced, Reference: tuning.Trial{Epochs: 1, Seconds: 2}, Epochs: l.epochs, Ours: func(int) bool { return true }}).Toll(); toll.Epochs != 1.5 {
		t.Errorf("what has no price: %+v, want what it takes longer", toll)
	}
	if (tuning.Course{}).Toll() != nil {
		t.Error("without a reference there is a toll")
	}
}
