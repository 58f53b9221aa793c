package recurring_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// line is a space of one system knob with the values 1 to n.
func line(knob string, n, own int) recurring.Space {
	s := recurring.Space{Knobs: []recurring.Knob{{Name: knob, System: true}}, Own: own - 1}
	for v := 1; v <= n; v++ {
		s.Points = append(s.Points, tuning.Settings{knob: tuning.Number(float64(v))})
	}
	return s
}

func start(t interface{ Fatal(...any) }, s recurring.Space, g recurring.Goal, probes int) *recurring.Tuner {
	tuner, err := recurring.New(s, g, probes)
	if err != nil {
		t.Fatal(err)
	}
	return tuner
}

// once runs a job of one epoch under what the tuner picks, and tells which point it was.
func once(t *recurring.Tuner, cost func(p int) tuning.Spent) int {
	p := t.Epoch(t.Course())
	t.Measured(p, cost(p))
	t.Reached(p, 1)
	return p
}

func TestAValleyIsFoundWithFewEpochs(t *testing.T) {
	t.Parallel()
	for best := 1; best <= 9; best++ {
		tuner := start(t, line("power_limit", 9, 9), recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}}, 0)
		cost := func(p int) tuning.Spent {
			d := float64(p + 1 - best)
			return tuning.Spent{Seconds: 1, Joules: 10 + d*d}
		}
		seen := map[int]bool{}
		for range 6 {
			seen[once(tuner, cost)] = true
		}
		if got := tuner.Best() + 1; got != best || !seen[best-1] {
			t.Errorf("the valley is at %d, found %d", best, got)
		}
	}
}

func TestTheFewestCoresAreFoundByHalving(t *testing.T) {
	t.Parallel()
	for enough := 1; enough <= 64; enough++ {
		g := recurring.Goal{Cores: true, MaxSlowdown: 1.05, MaxJoules: 1.02}
		tuner := start(t, line(tuning.Cores, 64, 64), g, 6)
		cost := func(p int) tuning.Spent {
			s := max(math.Pow(float64(enough)/float64(p+1), .9), 1)
			return tuning.Spent{Seconds: s, Joules: s}
		}
		tried := map[int]bool{}
		for range 10 {
			tried[once(tuner, cost)] = true
		}
		got := tuner.Best() + 1
		if limit := float64(enough) / math.Pow(1.02, 1/.9); float64(got) < limit || float64(got) > math.Ceil(limit) {
			t.Errorf("%d cores are enough, found %d", enough, got)
		}
		if len(tried) > 7 {
			t.Errorf("%d points tried, want 6 besides the owner's", len(tried))
		}
	}
}

func TestAShareOfFullSpeedIsAttainedWithTheFewestCoresAndThenTheLeastMemory(t *testing.T) {
	t.Parallel()
	s := recurring.Space{Knobs: []recurring.Knob{{Name: tuning.Cores, System: true}, {Name: "memory_gib", System: true}}}
	for c := 1.0; c <= 8; c++ {
		for m := 1.0; m <= 4; m++ {
			s.Points = append(s.Points, tuning.Settings{tuning.Cores: tuning.Number(c), "memory_gib": tuning.Number(m)})
		}
	}
	tuner := start(t, s, recurring.Goal{Attain: .98}, 8)
	for range 12 { // six cores are enough, and two units of memory; one does not run at all
		p := tuner.Epoch(tuner.Course())
		c, m := s.Points[p][tuning.Cores].Float(), s.Points[p]["memory_gib"].Float()
		if m < 2 && p != s.Own {
			tuner.Failed(p)
			continue
		}
		tuner.Measured(p, tuning.Spent{Seconds: 1 / min(c, 6), Joules: math.NaN()})
		tuner.Reached(p, 1)
	}
	if got := s.Points[tuner.Best()].Key(); got != "cores=6 memory_gib=2" {
		t.Errorf("found %s", got)
	}
}

// batches is a space of one course knob, doubling from 32, and one system knob.
func batches(n, own int) recurring.Space {
	s := recurring.Space{Knobs: []recurring.Knob{{Name: "power_limit", System: true}, {Name: "batch"}}, Own: own}
	for i := range n {
		s.Points = append(s.Points, tuning.Settings{"batch": tuning.Number(math.Exp2(float64(5 + i))), "power_limit": tuning.Number(100)})
	}
	return s
}

func TestTheOwnersSettingsComeFirstAndAreNeverStopped(t *testing.T) {
	t.Parallel()
	tuner := start(t, batches(4, 1), recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, 0)
	if p := tuner.Epoch(tuner.Course()); p != 1 {
		t.Errorf("begins with point %d", p)
	}
	tuner.Measured(1, tuning.Spent{Seconds: 1, Joules: 1})
	tuner.Reached(1, 10)
	if tuner.Stops(1, tuning.Spent{Seconds: 1e6}) {
		t.Error("the owner's run is stopped")
	}
	if tuner.Stops(2, tuning.Spent{Seconds: 19}) || !tuner.Stops(2, tuning.Spent{Seconds: 21}) {
		t.Error("another one is not stopped at twice the cost")
	}
	if tuner.Best() != 1 {
		t.Error("what was never run is the best")
	}
}

func TestOneLuckyRunDoesNotMakeACourseTheBest(t *testing.T) {
	t.Parallel()
	tuner := start(t, batches(2, 0), recurring.Goal{Measure: tuning.Measure{Objective: tuning.Time}}, 0)
	for _, run := range []struct {
		point  int
		epochs float64
	}{{0, 8}, {0, 12}, {0, 10}, {0, 11}, {0, 9}, {1, 9.95}} {
		tuner.Measured(run.point, tuning.Spent{Seconds: 1, Joules: 1})
		tuner.Reached(run.point, run.epochs)
	}
	if tuner.Best() != 0 {
		t.Error("a run that was half a percent faster than the mean of five is the best")
	}
}

func TestACourseThatBreaksTheLimitsIsNeverTheBest(t *testing.T) {
	t.Parallel()
	tuner := start(t, batches(2, 0), recurring.Goal{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1}, 0)
	tuner.Measured(0, tuning.Spent{Seconds: 10, Joules: 10})
	tuner.Reached(0, 5)
	tuner.Measured(1, tuning.Spent{Seconds: 12, Joules: 1})
	tuner.Reached(1, 5)
	if tuner.Best() != 0 {
		t.Error("a course that takes 1.2 times as long is the best")
	}
}

func TestABadSpaceIsRefused(t *testing.T) {
	t.Parallel()
	twice := line("batch", 2, 1)
	twice.Points = append(twice.Points, twice.Points[0])
	for name, s := range map[string]recurring.Space{"an empty one": {}, "an own point outside": {Points: line("x", 1, 1).Points, Own: 1}, "a point twice": twice} {
		if _, err := recurring.New(s, recurring.Goal{}, 0); !errors.Is(err, recurring.ErrSpace) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATunerStaysInItsSpaceIsTheSameEachTimeAndChoosesWhatItMeasured(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := recurring.Space{Knobs: []recurring.Knob{{Name: tuning.Cores, System: true}, {Name: "batch"}}}
		for b := range rapid.IntRange(1, 4).Draw(t, "batches") {
			for c := range rapid.IntRange(1, 5).Draw(t, "cores") {
				s.Points = append(s.Points, tuning.Settings{
					tuning.Cores: tuning.Number(float64(c + 1)), "batch": tuning.Number(math.Exp2(float64(b))),
				})
			}
		}
		s.Own = rapid.IntRange(0, len(s.Points)-1).Draw(t, "own")
		g := rapid.SampledFrom([]recurring.Goal{
			{Measure: tuning.Measure{Objective: tuning.Energy}},
			{Measure: tuning.Measure{Objective: tuning.Time}},
			{Measure: tuning.Measure{Objective: tuning.EDP}},
			{Measure: tuning.Measure{Objective: tuning.Blend, Weight: .5}},
			{Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1},
			{Cores: true, MaxSlowdown: 1.05, MaxJoules: 1.02},
			{Attain: .98},
		}).Draw(t, "goal")
		probes := rapid.IntRange(0, 6).Draw(t, "probes")
		one, two := start(t, s, g, probes), start(t, s, g, probes)
		measured := map[int]bool{}
		positive := rapid.Float64Range(.1, 100)
		for range rapid.IntRange(1, 25).Draw(t, "runs") {
			course := one.Course()
			if course != two.Course() {
				t.Fatal("the same history gives two courses")
			}
			p := one.Epoch(course)
			if p != two.Epoch(course) || p < 0 || p >= len(s.Points) {
				t.Fatalf("point %d of %d, or another one of the same history", p, len(s.Points))
			}
			if s.Points[p]["batch"] != s.Points[course]["batch"] && !g.Least() {
				t.Fatalf("an epoch of another course: %s in %s", s.Points[p], s.Points[course])
			}
			cost, epochs := tuning.Spent{Seconds: positive.Draw(t, "seconds"), Joules: positive.Draw(t, "joules")}, positive.Draw(t, "epochs")
			fate := rapid.SampledFrom([]string{"reached", "reached", "missed", "failed"}).Draw(t, "fate")
			for _, tuner := range []*recurring.Tuner{one, two} {
				if fate == "failed" && p != s.Own {
					tuner.Failed(p)
					continue
				}
				tuner.Measured(p, cost)
				if fate == "missed" {
					tuner.Missed(p)
				} else {
					tuner.Reached(p, epochs)
				}
			}
			measured[p] = true
			if b := one.Best(); b != two.Best() || !measured[b] && b != s.Own {
				t.Fatalf("the best is %d, which was not measured, or not the same twice", b)
			}
			others := len(measured)
			if measured[s.Own] {
				others--
			}
			if probes > 0 && others > probes {
				t.Fatalf("%d points tried, want at most %d", others, probes)
			}
		}
	})
}
