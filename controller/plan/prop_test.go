package plan_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// anyState draws states far wilder than the loop ever makes.
func anyState(t *rapid.T) tuning.State {
	s := running()
	number := func(name string) tuning.Value {
		return tuning.Number(float64(rapid.SampledFrom([]int{1, 2, 3, 4, 8}).Draw(t, name)))
	}
	settings := func(name string) tuning.Settings {
		n := number(name)
		out := tuning.Settings{tuning.Cores: n, tuning.Threads: n}
		if rapid.Bool().Draw(t, name+" has batch") {
			out["batch_size"] = tuning.Number(float64(rapid.SampledFrom([]int{8, 64, 128}).Draw(t, name+" batch")))
		}
		return out
	}
	s.Policy.Mode = rapid.SampledFrom(tuning.Modes()).Draw(t, "mode")
	s.Policy.Budget.Restarts = rapid.IntRange(0, 3).Draw(t, "restarts allowed")
	s.Policy.Budget.Probes = rapid.IntRange(0, 3).Draw(t, "probes allowed")
	s.Restarts, s.Probes = rapid.IntRange(0, 4).Draw(t, "restarts"), rapid.IntRange(0, 4).Draw(t, "probes")
	s.Site.AboveRequest = rapid.Bool().Draw(t, "above request")
	s.Site.DryRun = rapid.Bool().Draw(t, "dry run")
	s.Own = settings("own")
	s.Policy = s.Site.Narrow(s.Policy, s.Own)
	s.Current, s.Next = settings("current"), settings("next")
	s.Pending = rapid.Bool().Draw(t, "pending")
	s.EpochsDone = rapid.IntRange(0, 50).Draw(t, "done")
	s.EpochsTotal = rapid.IntRange(0, 50).Draw(t, "total")
	s.Gate = rapid.SampledFrom([]tuning.Reason{"", "", "", tuning.ReasonPaused, tuning.ReasonOff}).Draw(t, "gate")
	s.Measured = rapid.SampledFrom([]tuning.Reason{"", "", tuning.ReasonWarmingUp}).Draw(t, "measured")
	s.NextReason = rapid.SampledFrom([]tuning.Reason{"", tuning.ReasonProbesDone}).Draw(t, "next reason")
	s.RestartCost = time.Duration(rapid.IntRange(0, 20).Draw(t, "cost")) * time.Second
	s.KindEffects = []tuning.Effect{effect(settings("effect"), rapid.Float64Range(-1, 1).Draw(t, "effect size"))}
	s.BestGain = rapid.Float64Range(-1, 0).Draw(t, "gain")
	s.Best = &tuning.Trial{Settings: settings("best"), Epochs: 2, Seconds: 1}
	if rapid.Bool().Draw(t, "has outcome") {
		s.Outcome = &tuning.Outcome{
			Verdict:  rapid.SampledFrom([]tuning.Verdict{tuning.Regressed, tuning.Improved, tuning.Inconclusive}).Draw(t, "verdict"),
			LogRatio: rapid.Float64Range(-1, 1).Draw(t, "log ratio"),
		}
	}
	return s
}

func TestNoDecisionLeavesItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		d := plan.Decide(s)
		if d.Reason == tuning.ReasonNone || d.Reason.Sentence() == string(d.Reason) {
			t.Fatalf("decision %s has no reason that a user understands: %q", d.Action, d.Reason)
		}
		if d.Action == tuning.Hold {
			return
		}
		if s.Gate != tuning.ReasonNone {
			t.Fatalf("acted through a closed gate: %+v", d)
		}
		if s.Policy.Mode != tuning.Apply || s.Site.DryRun {
			t.Fatalf("acted in mode %s, dry run %v", s.Policy.Mode, s.Site.DryRun)
		}
		if knob, ok := s.Policy.Permits(s.Own, d.Settings); !ok {
			t.Fatalf("%s is outside of what is allowed: %s from %s", knob, d.Settings, s.Own)
		}
		if d.Settings.Equal(s.Current) && !s.Pending {
			t.Fatalf("%s to where it is already: %s", d.Action, d.Settings)
		}
		switch d.Action {
		case tuning.Probe:
			if s.Probes >= s.Policy.Budget.Probes {
				t.Fatalf("probe %d of %d", s.Probes+1, s.Policy.Budget.Probes)
			}
		case tuning.Move, tuning.RollBack:
			if !s.Pending && s.Restarts >= s.Policy.Budget.Restarts {
				t.Fatalf("restart %d of %d", s.Restarts+1, s.Policy.Budget.Restarts)
			}
		case tuning.Hold:
		}
	})
}

func TestTheSameStateGivesTheSameDecision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState(t)
		a, b := plan.Decide(s), plan.Decide(s)
		if a.Action != b.Action || a.Reason != b.Reason || !a.Settings.Equal(b.Settings) {
			t.Fatalf("first %+v, then %+v", a, b)
		}
	})
}
