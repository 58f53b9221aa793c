package plan_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// returning is a pending job whose kind ran four times, once to try a setting; two cores
// are worth a try.
func returning() tuning.State {
	s := pending()
	s.Policy.Budget.Returns = 3
	s.Returns = &tuning.Returns{Runs: 4, Spent: 1, Next: cores(2), Expected: -0.1, Error: 0.2, Between: 0.1}
	return s
}

func TestAReturnMayTryASetting(t *testing.T) {
	t.Parallel()
	better := effect(cores(2), -0.5)
	for _, tc := range []struct {
		name   string
		change func(*tuning.State)
		action tuning.Action
		reason tuning.Reason
		want   tuning.Settings
	}{
		{"a setting that may be better is tried", func(*tuning.State) {}, tuning.Move, tuning.ReasonTryingReturn, cores(2)},
		{"the owner allows no tries", func(s *tuning.State) { s.Policy.Budget.Returns = 0 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"they are used up", func(s *tuning.State) { s.Returns.Spent = 3 }, tuning.Hold, tuning.ReasonBudgetReturns, nil},
		{"they would be more than the site's share of the runs", func(s *tuning.State) { s.Returns.Runs, s.Returns.Spent = 2, 1 }, tuning.Hold, tuning.ReasonSiteCap, nil},
		{"the site allows none", func(s *tuning.State) { s.Site.ProbeShare = 0 }, tuning.Hold, tuning.ReasonSiteCap, nil},
		{"the setting is remembered to have hurt", func(s *tuning.State) { s.Regressed = []tuning.Settings{cores(2)} }, tuning.Hold, tuning.ReasonRemembered, nil},
		{"the way back would cost more than failed tuning may", func(s *tuning.State) {
			s.RestartCost, s.Returns.Longest = time.Minute, 1000
		}, tuning.Hold, tuning.ReasonLossLimit, nil},
		{"the wait in the queue is a part of the way back", func(s *tuning.State) {
			s.RestartCost, s.Wait, s.Returns.Longest = time.Second, time.Minute, 1000
		}, tuning.Hold, tuning.ReasonLossLimit, nil},
		{"the way back is short beside the run", func(s *tuning.State) {
			s.RestartCost, s.Returns.Longest = time.Minute, 2000
		}, tuning.Move, tuning.ReasonTryingReturn, cores(2)},
		{"there is no way back", func(s *tuning.State) {
			s.RestartCost, s.Returns.Longest, s.Policy.Checkpoint = time.Minute, 1000, nil
		}, tuning.Move, tuning.ReasonTryingReturn, cores(2)},
		{"nothing is worth a try", func(s *tuning.State) { s.Returns = &tuning.Returns{Runs: 4, Reason: tuning.ReasonAlreadyBest} }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"the search is not asked for a job without a past", func(s *tuning.State) { s.Returns = nil }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"what is recommended is not tried", func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, tuning.Hold, tuning.ReasonRecommend, nil},
		{"a dry site tries nothing", func(s *tuning.State) { s.Site.DryRun = true }, tuning.Hold, tuning.ReasonDryRun, nil},
		{"the untuned share stays untuned", func(s *tuning.State) { s.Gate = tuning.ReasonControlGroup }, tuning.Hold, tuning.ReasonControlGroup, nil},
		{"a running job is no return", func(s *tuning.State) { s.Pending = false }, tuning.Hold, tuning.ReasonWarmingUp, nil},
		{"a hyperparameter without a guard is not tried", func(s *tuning.State) {
			s.Policy.Quality = nil
			s.Returns.Next = cores(1).With("batch_size", tuning.Number(128))
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"what is known from whole runs is used", func(s *tuning.State) {
			s.Returns = &tuning.Returns{Runs: 9, Spent: 3, Reason: tuning.ReasonAlreadyBest, Best: &better}
		}, tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"also where no more may be tried", func(s *tuning.State) {
			s.Policy.Budget.Returns = 0
			s.Returns = &tuning.Returns{Runs: 9, Reason: tuning.ReasonBudgetReturns, Best: &better}
		}, tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"what is known and slower is not used where the time limit may end it", func(s *tuning.State) {
			slower := effect(cores(2), -0.5)
			slower.LogTime, s.LimitLeft = 0.08, time.Hour
			s.KindEffects = []tuning.Effect{slower}
			s.Returns = &tuning.Returns{Runs: 9, Reason: tuning.ReasonAlreadyBest, Best: &slower, Longest: 3480}
		}, tuning.Hold, tuning.ReasonSlower, nil},
		{"nor is what may be slower tried there", func(s *tuning.State) { s.LimitLeft, s.Returns.Longest = time.Hour, 3480 }, tuning.Hold, tuning.ReasonSlower, nil},
		{"what is not clear of the noise is not used", func(s *tuning.State) {
			slight := effect(cores(2), -0.02)
			s.Returns = &tuning.Returns{Runs: 9, Spent: 3, Reason: tuning.ReasonAlreadyBest, Best: &slight}
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := returning()
			tc.change(&s)
			d := plan.Decide(s)
			if d.Action != tc.action || d.Reason != tc.reason {
				t.Fatalf("decided %s because %s, want %s because %s", d.Action, d.Reason, tc.action, tc.reason)
			}
			if diff := cmp.Diff(tc.want, d.Settings); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
			if d.Reason == tuning.ReasonTryingReturn && len(d.Advice) > 0 || tc.action == tuning.Hold && len(d.Advice) > 0 {
				t.Errorf("a try is no advice: %s", d.Advice)
			}
		})
	}
}

func TestATryTellsItsNumbers(t *testing.T) {
	t.Parallel()
	want := []tuning.Evidence{
		{Name: "returns_seen", Value: 4},
		{Name: "returns_tried", Value: 1},
		{Name: "returns_allowed", Value: 3},
		{Name: "return_setting", Text: cores(2).String()},
		{Name: "return_setting_runs"},
		{Name: "return_expected_log_ratio", Value: -0.1},
		{Name: "return_standard_error", Value: 0.2},
		{Name: "returns_differ", Value: 0.1},
	}
	got := plan.Decide(returning()).Evidence
	if diff := cmp.Diff(want, got[:min(len(want), len(got))]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNoTryLeavesItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		s.Pending = true
		s.Policy.Budget.Returns = rapid.IntRange(0, 4).Draw(t, "returns allowed")
		s.Site.ProbeShare = rapid.SampledFrom([]float64{0, 0.25, 0.5, 1}).Draw(t, "share")
		number := rapid.SampledFrom([]float64{-3, -0.1, 0, 0.1, math.NaN(), math.Inf(1), math.Inf(-1)})
		s.Returns = &tuning.Returns{
			Runs: rapid.IntRange(0, 6).Draw(t, "runs"), Spent: rapid.IntRange(0, 6).Draw(t, "spent"),
			Next:     cores(float64(rapid.SampledFrom([]int{1, 2, 3, 64}).Draw(t, "next"))),
			Expected: number.Draw(t, "expected"), Error: number.Draw(t, "error"),
		}
		if rapid.Bool().Draw(t, "has a best") {
			e := effect(cores(float64(rapid.SampledFrom([]int{1, 2, 64}).Draw(t, "best"))), number.Draw(t, "best ratio"))
			s.Returns.Best = &e
		}
		d := plan.Decide(s)
		if d.Action == tuning.Hold {
			return
		}
		if knob, ok := s.Policy.Permits(s.Own, d.Settings); !ok {
			t.Fatalf("%s is outside of what is allowed: %s from %s", knob, d.Settings, s.Own)
		}
		for _, bad := range s.Regressed {
			if d.Settings.Equal(bad) && !bad.Equal(s.Own) {
				t.Fatalf("%s is remembered to have hurt", d.Settings)
			}
		}
		if d.Reason != tuning.ReasonTryingReturn {
			return
		}
		if s.Gate != tuning.ReasonNone || s.Policy.Mode != tuning.Apply || s.Site.DryRun || d.Action != tuning.Move {
			t.Fatalf("tried in mode %s, dry run %v, gate %q", s.Policy.Mode, s.Site.DryRun, s.Gate)
		}
		if s.Returns.Spent >= s.Policy.Budget.Returns {
			t.Fatalf("try %d of %d", s.Returns.Spent+1, s.Policy.Budget.Returns)
		}
		if float64(s.Returns.Spent+1) > s.Site.ProbeShare*float64(s.Returns.Runs+1) {
			t.Fatalf("%d tries among %d runs, of which the site allows %g", s.Returns.Spent+1, s.Returns.Runs+1, s.Site.ProbeShare)
		}
	})
}

// large are settings under which a job learns with another batch.
func large(n float64) tuning.Settings { return cores(n).With("batch_size", tuning.Number(128)) }

func TestWhatAJobLearnsChangesOnlyBeforeItsStartAndByWholeRuns(t *testing.T) {
	t.Parallel()
	only := func(s *tuning.State) { // no other knob is left
		s.Policy.Knobs = s.Policy.Knobs[3:4]
		s.Next, s.NextReason = nil, tuning.ReasonWholeRuns
	}
	faster := effect(large(1), -0.5)
	class := func(s *tuning.State) {
		s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest, Distance: 0.5, Radius: 2, NearestID: "c1"}
		s.ClassEffects = []tuning.Effect{faster}
	}
	decideAll(t, []row{
		{"whole runs that saved are a reason before a start", returning, func(s *tuning.State) {
			s.Returns = &tuning.Returns{Runs: 9, Spent: 3, Reason: tuning.ReasonAlreadyBest, Best: &faster}
		}, tuning.Move, tuning.ReasonRecalled, large(1)},
		{"and a try is one, where its owner allows it", returning, func(s *tuning.State) { s.Returns.Next = large(1) }, tuning.Move, tuning.ReasonTryingReturn, large(1)},
		{"epochs of the kind that were faster are none", pending, func(s *tuning.State) { s.KindEffects = []tuning.Effect{faster} }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"not even for the cores that went with it", pending, func(s *tuning.State) {
			s.KindEffects = []tuning.Effect{effect(large(2), -0.5)}
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor within a run", running, func(s *tuning.State) {
			s.KindEffects, s.Next, s.NextReason = []tuning.Effect{faster}, nil, tuning.ReasonProbesDone
		}, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"nor are those of its class", running, func(s *tuning.State) {
			class(s)
			s.Next, s.NextReason = nil, tuning.ReasonProbesDone
		}, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"a search that proposes it is refused", running, func(s *tuning.State) { s.Next = large(1) }, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"and so is a trial that won", probed, func(s *tuning.State) {
			s.Best, s.BestGain = &tuning.Trial{Settings: large(1), Epochs: 2, Seconds: 0.05}, -3
		}, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"a job that began with another batch goes on with it", recalled, func(s *tuning.State) {
			s.Current, s.Trials[0].Settings = large(2), large(2)
			s.KindEffects = []tuning.Effect{effect(cores(2), -0.9)}
		}, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"however long its epochs are", recalled, func(s *tuning.State) {
			s.Current, s.Trials[0].Settings, s.Trials[0].Seconds = large(2), large(2), 50
			s.KindEffects = nil
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a job that was moved there by an older version goes home", probed, func(s *tuning.State) {
			s.Current, s.Trials[1].Settings = large(1), large(1)
			s.Trials[1].Seconds, s.Best, s.BestGain = 1.5, nil, 0
		}, tuning.RollBack, tuning.ReasonProbesNoGain, cores(1)},
		{"where nothing else is left the hold says so", running, only, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"before a start too", pending, only, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"and where the owner's runs are too few", returning, func(s *tuning.State) {
			only(s)
			s.Returns = &tuning.Returns{Runs: 1, Reason: tuning.ReasonWholeRuns, Ends: 1, EndsNeeded: 3}
		}, tuning.Hold, tuning.ReasonWholeRuns, nil},
	})
}

func TestAHoldForWholeRunsSaysWhatItWouldTake(t *testing.T) {
	t.Parallel()
	running := running()
	running.Next, running.NextReason = nil, tuning.ReasonWholeRuns
	running.Policy.Budget.Returns = 0
	pending := returning()
	pending.Returns = &tuning.Returns{Runs: 2, Reason: tuning.ReasonWholeRuns, Ends: 1, EndsNeeded: 3}
	for _, tc := range []struct {
		name  string
		state tuning.State
		want  []tuning.Evidence
	}{
		{"a running job whose owner allows no tries", running, []tuning.Evidence{{Name: "hyperparameters", Text: "batch_size"}, {Name: "returns_allowed"}}},
		{"a pending job whose kind ran too seldom", pending, []tuning.Evidence{
			{Name: "hyperparameters", Text: "batch_size"},
			{Name: "returns_seen", Value: 2},
			{Name: "returns_tried"},
			{Name: "returns_allowed", Value: 3},
			{Name: "own_runs_seen", Value: 1},
			{Name: "own_runs_needed", Value: 3},
		}},
	} {
		d := plan.Decide(tc.state)
		if got := d.Evidence[max(0, len(d.Evidence)-len(tc.want)):]; d.Reason != tuning.ReasonWholeRuns || !cmp.Equal(tc.want, got) {
			t.Errorf("%s: %s because of %+v, want %s because of %+v", tc.name, d.Reason, d.Evidence, tuning.ReasonWholeRuns, tc.want)
		}
	}
}
