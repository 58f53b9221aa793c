package plan_test

import (
	"math"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

// recalled is a returning job that was given two cores before it started. It runs
// at two seconds per epoch, where its kind took one untuned.
func recalled() tuning.State {
	s := running()
	s.Current = cores(2)
	s.Trials = []tuning.Trial{{Settings: cores(2), Epochs: 3, Seconds: 2}}
	s.EpochSeconds = 2
	s.KindSeconds, s.KindRuns = 1, 3
	s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)}
	s.Next, s.NextReason = nil, tuning.ReasonProfiling // without a reference nothing is proposed
	return s
}

// answered is that job after its owner's settings were tried.
func answered(own, gain float64) func() tuning.State {
	return func() tuning.State {
		s := recalled()
		s.Current, s.Probes, s.ProbeEpochs, s.EpochSeconds = cores(1), 1, 3, own
		s.Trials = append(s.Trials, tuning.Trial{Settings: cores(1), Epochs: 2, Seconds: own, Reference: true})
		s.Best, s.BestGain, s.BestError = &s.Trials[0], gain, 0.05
		s.Next, s.NextReason = cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonNone
		return s
	}
}

func TestARecalledSettingIsDoubtedOnce(t *testing.T) {
	t.Parallel()
	slowerKnown := func(s *tuning.State) { s.KindEffects[0].LogTime = math.Log(1.7) }
	decideAll(t, []row{
		{"a recalled job that is slower than its kind untuned tries its owner's settings", recalled, nil, tuning.Probe, tuning.ReasonDoubted, cores(1)},
		{"a surprise within the margin is none", recalled, func(s *tuning.State) { s.Trials[0].Seconds = 1.24 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a surprise just above it is", recalled, func(s *tuning.State) { s.Trials[0].Seconds, s.EpochsTotal = 1.26, 400 }, tuning.Probe, tuning.ReasonDoubted, cores(1)},
		{"what its owner allows it to be slower is no surprise", recalled, func(s *tuning.State) { s.Policy.MaxSlowdown = 1.7 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"an allowance below one does not raise more doubts", recalled, func(s *tuning.State) { s.Policy.MaxSlowdown, s.Trials[0].Seconds = 0.5, 1.2 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a setting chosen for joules may take the time that it is known to take", recalled, slowerKnown, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"and no more", recalled, func(s *tuning.State) { slowerKnown(s); s.Trials[0].Seconds = 2.2 }, tuning.Probe, tuning.ReasonDoubted, cores(1)},
		{"nor is longer on fewer cores, where only what they cost counts", recalled, func(s *tuning.State) {
			s.Policy.Objective, s.Own, s.Current, s.KindEffects = tuning.Cost, cores(4), cores(2), nil
			s.Trials[0].Seconds = 1.6
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"but what costs more is doubted", recalled, func(s *tuning.State) {
			s.Policy.Objective, s.Own, s.Current, s.KindEffects = tuning.Cost, cores(4), cores(2), nil
			s.Trials[0].Seconds = 2.6
		}, tuning.Probe, tuning.ReasonDoubted, cores(4)},
		{"one epoch is no reason to doubt", recalled, func(s *tuning.State) { s.Trials[0].Epochs = 1 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor are fewer than make a profile", recalled, func(s *tuning.State) { s.Policy.Profile.Epochs = 4 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a kind that never ran untuned raises none", recalled, func(s *tuning.State) { s.KindSeconds, s.KindRuns = 0, 0 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"seconds without a run behind them raise none", recalled, func(s *tuning.State) { s.KindRuns = 0 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a job under its owner's settings has nothing to doubt", running, func(s *tuning.State) { s.KindSeconds, s.KindRuns = 0.1, 3 }, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"a job that was probed is not doubted", recalled, func(s *tuning.State) { s.Probes = 1 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"memory that was given up may be doubted too", recalled, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
			s.Current = s.Own.With(tuning.Memory, tuning.Number(1<<30))
			s.Trials[0].Settings, s.KindEffects = s.Current, nil
		}, tuning.Probe, tuning.ReasonDoubted, cores(1).With(tuning.Memory, tuning.Number(8<<30))},

		{"the doubt needs a profile", recalled, func(s *tuning.State) { s.Measured = tuning.ReasonWarmingUp }, tuning.Hold, tuning.ReasonWarmingUp, nil},
		{"the doubt needs a checkpoint", recalled, func(s *tuning.State) { s.Policy.Checkpoint = nil }, tuning.Hold, tuning.ReasonNoCheckpoint, nil},
		{"the doubt needs a probe in the budget", recalled, func(s *tuning.State) { s.Policy.Budget.Probes = 0 }, tuning.Hold, tuning.ReasonBudgetProbes, nil},
		{"the doubt needs a restart in the budget", recalled, func(s *tuning.State) { s.Policy.Budget.Restarts = 0 }, tuning.Hold, tuning.ReasonBudgetRestarts, nil},
		{"the doubt needs a restart of the site's", recalled, func(s *tuning.State) { s.Site.JobRestarts = 1 }, tuning.Hold, tuning.ReasonSiteCap, nil},
		{"the doubt keeps to the share of probes", recalled, func(s *tuning.State) { s.Site.ProbeShare = 0.05 }, tuning.Hold, tuning.ReasonTooShort, nil},
		{"the doubt must be worth it", recalled, func(s *tuning.State) { s.RestartCost = 12 * time.Second }, tuning.Hold, tuning.ReasonWorthless, nil},
		{"the doubt is only said in recommend mode", recalled, func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, tuning.Hold, tuning.ReasonRecommend, nil},
		{"the doubt is only recorded in a dry run", recalled, func(s *tuning.State) { s.Site.DryRun = true }, tuning.Hold, tuning.ReasonDryRun, nil},
		{"modelled joules do not silence a doubt about seconds", recalled, func(s *tuning.State) {
			s.Policy.Objective, s.JoulesSource = tuning.Energy, tuning.Modelled
		}, tuning.Probe, tuning.ReasonDoubted, cores(1)},

		{"where its owner's settings were as slow, the recalled one is returned to", answered(4, -0.6), nil, tuning.Move, tuning.ReasonProbeWon, cores(2)},
		{"where its owner's settings were better, it stays there and searches no further", answered(1, 0), nil, tuning.Hold, tuning.ReasonProbesNoGain, nil},
		{"a gain within the noise is not returned to", answered(2.04, -0.02), nil, tuning.Hold, tuning.ReasonProbesNoGain, nil},
		{"the way back must be worth it", answered(4, -0.6), func(s *tuning.State) { s.EpochsTotal, s.RestartCost = 5, 2*time.Second }, tuning.Hold, tuning.ReasonWorthless, nil},
		{"back at the recalled setting it stays", answered(4, -0.6), func(s *tuning.State) { s.Current, s.Restarts = cores(2), 1 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"what its owner refuses is not returned to", answered(1, 0), func(s *tuning.State) { s.Best = nil }, tuning.Hold, tuning.ReasonProbesNoGain, nil},
		{"its owner's settings that are not measured yet are waited for", recalled, func(s *tuning.State) {
			s.Current, s.Probes = cores(1), 1
		}, tuning.Hold, tuning.ReasonProfiling, nil},
	})
}

func TestAJobThatCameFromMemoryIsNotMovedForNothing(t *testing.T) {
	t.Parallel()
	small, large := tuning.Number(300<<20), tuning.Number(8<<30)
	frugal := func(s *tuning.State) {
		s.Own = s.Own.With(tuning.Memory, large)
		s.Current = cores(2).With(tuning.Memory, small)
		s.Trials[0].Settings, s.Trials[0].Seconds = s.Current, 0.9
	}
	killed := func(s *tuning.State) { // for memory: the owner's settings are back, and one epoch was done before
		frugal(s)
		s.Regressed = []tuning.Settings{s.Current}
		s.Current, s.KindSeconds = s.Own, 0
		s.Trials = append(s.Trials, tuning.Trial{Settings: s.Own, Epochs: 2, Seconds: 1.8, Reference: true})
		s.Best, s.BestGain, s.BestError, s.EpochSeconds = &s.Trials[0], -0.6, 0.05, 1.8
		s.NextReason = tuning.ReasonProbesDone
	}
	decideAll(t, []row{
		{"memory that was given up is not taken back by a restart", recalled, frugal, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"after a kill for memory the setting is taken without its memory", recalled, killed, tuning.Move, tuning.ReasonProbeWon, cores(2).With(tuning.Memory, large)},
		{"a kind that regressed with all its memory is not tried again with less", pending, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(4<<30))
			s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)}
			s.Regressed = []tuning.Settings{cores(2).With(tuning.Memory, large)}
		}, tuning.Hold, tuning.ReasonRemembered, nil},
		{"a setting known to be a little better than the present one is not worth a restart", recalled, func(s *tuning.State) {
			s.Trials[0].Seconds, s.EpochSeconds = 0.6, 0.6
			best := effect(tuning.Settings{tuning.Cores: tuning.Number(2), "prefetch": tuning.Number(64)}, -0.55)
			s.KindEffects = append(s.KindEffects, best)
			s.RestartCost = time.Second
		}, tuning.Hold, tuning.ReasonWorthless, nil},
		{"others that disturb a recalled job do not send it back", recalled, func(s *tuning.State) {
			s.Measured, s.Toll = tuning.ReasonPolluted, disturbedToll(30)
		}, tuning.Hold, tuning.ReasonPolluted, nil},
	})
}

func TestAnOutcomeCountsOnlyForTheSettingItJudged(t *testing.T) {
	t.Parallel()
	bad := func(s *tuning.State, of tuning.Settings, reason tuning.Reason, ratio float64) {
		s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: reason, LogRatio: ratio, Tuned: of}
	}
	decideAll(t, []row{
		{"that of the present setting does", probed, func(s *tuning.State) { bad(s, cores(2), tuning.ReasonRegressed, 0.3) }, tuning.RollBack, tuning.ReasonRegressed, cores(1)},
		{"that of a setting that was left does not", probed, func(s *tuning.State) {
			bad(s, cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonRegressed, 0.3)
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a lost quality is left although the epochs are shorter", probed, func(s *tuning.State) { bad(s, nil, tuning.ReasonQualityLost, -0.6) }, tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
		{"so is a setting that is slower than allowed and saves joules", probed, func(s *tuning.State) { bad(s, nil, tuning.ReasonSlower, -0.2) }, tuning.RollBack, tuning.ReasonSlower, cores(1)},
		{"not for the last epoch", probed, func(s *tuning.State) {
			bad(s, nil, tuning.ReasonQualityLost, -0.6)
			s.EpochsDone, s.RestartCost = 39, 10*time.Second
		}, tuning.Hold, tuning.ReasonTooShort, nil},
	})
}

func TestOldKnowledgeCountsLess(t *testing.T) {
	t.Parallel()
	aged := func(logRatio, days float64) func(*tuning.State) {
		return func(s *tuning.State) {
			e := effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, logRatio)
			e.Age = days
			s.KindEffects = []tuning.Effect{e}
		}
	}
	decideAll(t, []row{
		{"a small effect is used while it is new", pending, aged(-0.1, 0), tuning.Move, tuning.ReasonRecalled, nil},
		{"half a year later it is not", pending, aged(-0.1, 180), tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a large effect still is", pending, aged(-0.6, 180), tuning.Move, tuning.ReasonRecalled, nil},
		{"after many years nothing is", pending, aged(-0.6, 3650), tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"an age below nothing is none", pending, aged(-0.1, -1e6), tuning.Move, tuning.ReasonRecalled, nil},
		{"a number that is none moves nothing", pending, aged(math.NaN(), 0), tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor does infinity", pending, aged(math.Inf(-1), 0), tuning.Hold, tuning.ReasonAlreadyBest, nil},
	})
}

func TestMemoryAloneIsNotToldAsAnEffect(t *testing.T) {
	t.Parallel()
	plenty := func(s *tuning.State) {
		s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
		s.PeakRSS, s.PeakRuns = 100<<20, 3
	}
	small := tuning.Number(150 << 20)
	decideAll(t, []row{
		{"memory alone has a reason of its own", pending, plenty, tuning.Move, tuning.ReasonRightSized, cores(1).With(tuning.Memory, small)},
		{"also where its kind found nothing better", pending, func(s *tuning.State) {
			plenty(s)
			s.KindEffects = []tuning.Effect{effect(cores(2), 0.4)}
		}, tuning.Move, tuning.ReasonRightSized, cores(1).With(tuning.Memory, small)},
		{"with an effect the reason is the effect", pending, func(s *tuning.State) {
			plenty(s)
			s.KindEffects = []tuning.Effect{effect(cores(2), -0.4)}
		}, tuning.Move, tuning.ReasonRecalled, cores(2).With(tuning.Memory, small)},
		{"a pending job whose only better setting hurt before starts as it is", pending, func(s *tuning.State) {
			s.KindEffects, s.Regressed = []tuning.Effect{effect(cores(2), -0.5)}, []tuning.Settings{cores(2)}
		}, tuning.Hold, tuning.ReasonRemembered, nil},
		{"where another setting is known that is used", pending, func(s *tuning.State) {
			batch := tuning.Settings{"prefetch": tuning.Number(64)}
			s.KindEffects, s.Regressed = []tuning.Effect{effect(cores(2), -0.5), effect(batch, -0.3)}, []tuning.Settings{cores(2)}
		}, tuning.Move, tuning.ReasonRecalled, cores(1).With("prefetch", tuning.Number(64))},
	})
}

func TestAJobIsNotSentAgainToWhatItJustLeft(t *testing.T) {
	t.Parallel()
	left := func(s *tuning.State) {
		s.Current, s.Probes = s.Own, 0
		s.KindEffects = []tuning.Effect{effect(tuning.Settings{tuning.Cores: tuning.Number(2)}, -0.5)}
		s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonQualityLost, Tuned: cores(2)}
	}
	decideAll(t, []row{
		{"however good it was for its kind", running, left, tuning.Hold, tuning.ReasonRemembered, nil},
		{"however fast it was here", probed, func(s *tuning.State) {
			left(s)
			s.Probes = 1
		}, tuning.Hold, tuning.ReasonProbesNoGain, nil},
		{"where nothing else is left, that is the reason", running, func(s *tuning.State) {
			left(s)
			s.Next, s.NextReason = nil, tuning.ReasonProbesDone
		}, tuning.Hold, tuning.ReasonRemembered, nil},
	})
}

func TestABudgetThatEndsLeavesNoJobUnderALosingProbe(t *testing.T) {
	t.Parallel()
	spent := func(seconds float64) func(*tuning.State) {
		return func(s *tuning.State) {
			s.Policy.Budget.Time, s.Elapsed = time.Minute, time.Minute
			s.Trials[1].Seconds, s.Best, s.BestGain = seconds, nil, 0
			s.Next, s.NextReason = cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonNone
		}
	}
	and := func(first, then func(*tuning.State)) func(*tuning.State) {
		return func(s *tuning.State) { first(s); then(s) }
	}
	decideAll(t, []row{
		{"one that lost is left", probed, spent(1.5), tuning.RollBack, tuning.ReasonBudgetTime, cores(1)},
		{"one that won stays", probed, spent(0.5), tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"one that is within the noise stays", probed, spent(1.02), tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"one that is not judged yet is waited for", probed, and(spent(1.5), func(s *tuning.State) {
			s.Trials, s.Measured = s.Trials[:1], tuning.ReasonProfiling
		}), tuning.Hold, tuning.ReasonProfiling, nil},
		{"one that its owner refuses is left", probed, and(spent(0.5), func(s *tuning.State) { s.Refused = tuning.ReasonQualityLost }), tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
		{"near the time limit it stays", probed, and(spent(1.5), func(s *tuning.State) { s.LimitLeft = time.Second }), tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"while the queue is long it waits there", probed, and(spent(1.5), func(s *tuning.State) { s.Wait = time.Hour }), tuning.Hold, tuning.ReasonLongQueue, nil},
		{"where the way back costs more than it saves it stays", probed, and(spent(1.5), func(s *tuning.State) { s.RestartCost = time.Minute }), tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"with no restart left it stays", probed, and(spent(1.5), func(s *tuning.State) { s.Restarts = 2 }), tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"a regression is returned from as well", probed, and(spent(1.5), regressed), tuning.RollBack, tuning.ReasonRegressed, cores(1)},
		{"a job under its owner's settings runs on", running, func(s *tuning.State) {
			s.Policy.Budget.Time, s.Elapsed = time.Minute, time.Minute
		}, tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"a recalled job runs on where it is", recalled, func(s *tuning.State) {
			s.Policy.Budget.Time, s.Elapsed = time.Minute, time.Minute
		}, tuning.Hold, tuning.ReasonBudgetTime, nil},
	})
}
