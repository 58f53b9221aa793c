package plan_test

import (
	"math"
	"testing"
	"time"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

// losing is a job of 40 epochs of one second whose probe of two cores has taken so many
// seconds for its first epoch, which has not ended.
func losing(running float64) tuning.State {
	s := probed()
	s.Trials, s.Best, s.Measured, s.Saved = s.Trials[:1], nil, tuning.ReasonWarmingUp, true
	over := max(running-1, 0)
	s.Toll = &tuning.Toll{Own: 1, Harm: 0.3 + over, Epochs: 0.3 + over, Present: tuning.Present{Epochs: over, Running: running}}
	return s
}

func TestTheStopLoss(t *testing.T) {
	t.Parallel()
	slow := func(s *tuning.State) {
		// Three epochs of two seconds each, of a job that is long enough to afford them.
		s.EpochsTotal = 4000
		s.Toll = &tuning.Toll{Own: 1, Harm: 3, Epochs: 3, Present: tuning.Present{Epochs: 3, Done: 3, Seconds: 6}}
	}
	for _, c := range []struct {
		name    string
		running float64
		change  func(*tuning.State)
		action  tuning.Action
		reason  tuning.Reason
		discard bool
	}{
		{"a probe whose first epoch takes as long as the owner's goes on", 0.9, nil, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"one that has cost as much as it may ends at once, and its epoch is thrown away", 2, nil, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"the longer the job, the more it may cost", 1.4, func(s *tuning.State) { s.EpochsTotal = 400 }, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"a hopeless one is not waited for, however long the job", 3, func(s *tuning.State) { s.EpochsTotal = 4000 }, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"one that did several epochs since its checkpoint saves them", 0, slow, tuning.RollBack, tuning.ReasonStopLoss, false},
		{"nothing is thrown away where no checkpoint is known", 2, func(s *tuning.State) { s.Saved = false }, tuning.RollBack, tuning.ReasonStopLoss, false},
		{"disturbed or not", 2, func(s *tuning.State) { s.Measured = tuning.ReasonPolluted }, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"without a gain, a probe that costs a twentieth of the job is left", 1.42, nil, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"what a measured setting surely saves lets it cost more", 1.42, func(s *tuning.State) {
			s.Best, s.BestGain, s.BestError = &tuning.Trial{Settings: cores(1).With("prefetch", tuning.Number(64)), Epochs: 3, Seconds: 0.5}, -0.6, 0.05
		}, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"surely slower than the owner allows", 2.2, func(s *tuning.State) { s.EpochsTotal, s.Policy.MaxSlowdown = 4000, 1.1 }, tuning.RollBack, tuning.ReasonSlower, true},
		{"a little slower than the owner allows is measured first", 1.2, func(s *tuning.State) { s.EpochsTotal, s.Policy.MaxSlowdown = 4000, 1.1 }, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"no budget of restarts keeps a job where it loses", 2, func(s *tuning.State) { s.Restarts = 2 }, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"less memory is not blamed for a machine that is slower", 1.4, func(s *tuning.State) {
			s.Current = s.Own.With(tuning.Memory, tuning.Number(256<<20))
		}, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"but for epochs that are hopeless", 2, func(s *tuning.State) {
			s.Current = s.Own.With(tuning.Memory, tuning.Number(256<<20))
		}, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"it goes to a better setting that it measured, rather than to its owner's", 2, func(s *tuning.State) {
			s.Trials = append(s.Trials, tuning.Trial{Settings: cores(1).With("prefetch", tuning.Number(64)), Epochs: 3, Seconds: 0.5})
		}, tuning.Move, tuning.ReasonStopLoss, true},
		{"a job at its end stays, since the way back costs more", 2, func(s *tuning.State) { s.EpochsDone = 40 }, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"a job without a checkpoint is not touched", 2, func(s *tuning.State) { s.Policy.Checkpoint = nil }, tuning.Hold, tuning.ReasonNoCheckpoint, false},
		{"what others taught is left too once it costs too much", 2, func(s *tuning.State) { s.Probes, s.Toll.Kind = 0, true }, tuning.RollBack, tuning.ReasonStopLoss, true},
		{"a first epoch that takes a little longer is no reason, however dear the way back", 1.1, func(s *tuning.State) {
			s.EpochsTotal, s.EpochsDone, s.RestartCost, s.Probes, s.Toll.Kind = 0, 0, 3*time.Second, 0, true
		}, tuning.Hold, tuning.ReasonWarmingUp, false},
		{"a setting that saves is not left because the search was dear", 0.5, func(s *tuning.State) {
			s.Toll.Harm, s.Toll.Present = 5, tuning.Present{Epochs: -2, Done: 4, Seconds: 2, Running: 0.3}
		}, tuning.Hold, tuning.ReasonWarmingUp, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := losing(c.running)
			if c.change != nil {
				c.change(&s)
			}
			d := plan.Decide(s)
			if d.Action != c.action || d.Reason != c.reason || d.Discard != c.discard {
				t.Errorf("got %s because %s, discard %v; want %s because %s, %v (%v)", d.Action, d.Reason, d.Discard, c.action, c.reason, c.discard, d.Evidence)
			}
		})
	}
}

// A run that began with another batch may reach its target in fewer epochs, however long
// these are; without a target it does as many as its owner's.
func TestTheStopLossOfAnotherBatch(t *testing.T) {
	t.Parallel()
	began := func(running float64, target *float64) func() tuning.State {
		return func() tuning.State {
			s := losing(running)
			s.Probes, s.Current, s.Policy.Quality.Target = 0, large(1), target
			return s
		}
	}
	decideAll(t, []row{
		{"it does as many epochs as its owner's", began(1.9, nil), nil, tuning.RollBack, tuning.ReasonStopLoss, nil},
		{"it may need fewer of them to its target", began(1.9, new(0.9)), nil, tuning.Hold, tuning.ReasonWarmingUp, nil},
		{"not as many fewer", began(2.5, new(0.9)), nil, tuning.RollBack, tuning.ReasonStopLoss, nil},
		{"whatever its owner bounds stays bounded", began(1.9, new(0.9)), func(s *tuning.State) { s.Policy.MaxSlowdown = 1.1 }, tuning.RollBack, tuning.ReasonSlower, nil},
	})
}

func TestNothingIsTriedThatCouldCostMoreThanItMay(t *testing.T) {
	t.Parallel()
	decideAll(t, []row{
		{"a restart that is a twentieth of the job is too dear to try anything", running, func(s *tuning.State) {
			s.RestartCost = time.Second
		}, tuning.Hold, tuning.ReasonLossLimit, nil},
		{"a queue is part of it", running, func(s *tuning.State) { s.Wait = time.Second }, tuning.Hold, tuning.ReasonLossLimit, nil},
		{"a longer job can afford it", running, func(s *tuning.State) {
			s.RestartCost, s.EpochsTotal = time.Second, 80
		}, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"what was lost so far is not lost again", running, func(s *tuning.State) {
			s.Toll = &tuning.Toll{Own: 1, Harm: 0.5, Epochs: 0.5}
		}, tuning.Hold, tuning.ReasonLossLimit, nil},
		{"what jobs of its kind showed is no trial", running, func(s *tuning.State) {
			s.RestartCost = time.Second
			s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)}
		}, tuning.Move, tuning.ReasonRecalled, nil},
	})
}

func TestTheEvidenceIsWhatWasCompared(t *testing.T) {
	t.Parallel()
	values := func(s tuning.State) map[string]float64 {
		out := map[string]float64{}
		for _, e := range plan.Decide(s).Evidence {
			out[e.Name] = e.Value
		}
		return out
	}
	dear := running()
	dear.RestartCost = time.Second
	if v := values(dear); v["both_ways_epochs"] != 2 || !(v["loss_epochs"]+v["both_ways_epochs"]+v["trying_epochs"] > v["loss_limit_epochs"]) {
		t.Errorf("the sum does not exceed the limit: %v", v)
	}
	slow := probed()
	slow.Trials[1].Seconds, slow.Best, slow.Refused, slow.Policy.MaxSlowdown = 1.6, nil, tuning.ReasonSlower, 1.1
	if v := values(slow); math.Abs(v["log_time"]-math.Log(1.6)) > 1e-9 || v["max_slowdown"] != 1.1 || len(v) != 2 {
		t.Errorf("evidence %v, want how slow it was, and what is allowed", v)
	}
}
