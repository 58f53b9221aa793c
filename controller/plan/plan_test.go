package plan_test

import (
	"math"
	"testing"
	"time"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

func cores(n float64) tuning.Settings {
	return tuning.Settings{tuning.Cores: tuning.Number(n), tuning.Threads: tuning.Number(n)}
}

// running is a job on one core that was profiled, is unknown, has 36 epochs of
// one second left, and may be probed on two cores.
func running() tuning.State {
	p := tuning.DefaultPolicy()
	p.Mode = tuning.Apply
	p.Knobs = []tuning.Knob{
		{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(2)}},
		{Name: tuning.Threads, Env: "THREADS", Follows: tuning.Cores},
		{Name: "prefetch", Env: "PREFETCH", Values: []tuning.Value{tuning.Number(8), tuning.Number(64)}, Quality: tuning.QualitySame},
		{Name: "batch_size", Env: "BATCH_SIZE", Values: []tuning.Value{tuning.Number(32), tuning.Number(128)}, Default: tuning.Number(32)},
		{Name: tuning.Memory, Min: tuning.Number(64 << 20), Max: tuning.Number(8 << 30)},
	}
	p.Progress.Pattern = "epoch (?P<epoch>[0-9]+)"
	p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85}
	p.Quality = &tuning.Quality{Direction: "max", MaxLoss: 0.01}
	site := tuning.DefaultSite()
	site.MaxMode, site.AboveRequest = tuning.Apply, true
	own := cores(1)
	return tuning.State{
		Now:            time.Unix(1000, 0),
		Policy:         p,
		Site:           site,
		Standing:       tuning.Standing{Own: own, Current: own, EpochsDone: 4, EpochsTotal: 40, EpochSeconds: 1},
		RestartOutlook: tuning.RestartOutlook{RestartCost: 300 * time.Millisecond},
		Findings:       tuning.Findings{Class: &tuning.Class{Reason: tuning.ReasonNoModel}, Trials: []tuning.Trial{{Settings: own, Epochs: 3, Seconds: 1, Reference: true}}},
		Proposal:       tuning.Proposal{Next: cores(2)},
	}
}

func probed() tuning.State {
	s := running()
	s.Current, s.Probes, s.Next, s.NextReason = cores(2), 1, nil, tuning.ReasonProbesDone
	s.Trials = append(s.Trials, tuning.Trial{Settings: cores(2), Epochs: 2, Seconds: 0.5})
	s.Best, s.BestGain, s.BestError = &s.Trials[1], -0.6, 0.05
	return s
}

// disturbedToll is that of an attempt of so many epochs, all disturbed and as long as untuned.
func disturbedToll(n int) *tuning.Toll {
	return &tuning.Toll{Own: 1, Present: tuning.Present{Done: n, Disturbed: n, Seconds: float64(n)}}
}

func pending() tuning.State {
	s := running()
	s.Pending, s.EpochsDone, s.EpochsTotal, s.EpochSeconds, s.Trials, s.Class = true, 0, 0, 0, nil, nil
	s.Measured = tuning.ReasonWarmingUp
	return s
}

func effect(s tuning.Settings, logRatio float64) tuning.Effect {
	return tuning.Effect{Settings: s, LogRatio: logRatio, LogTime: logRatio, SD: 0.05, Runs: 2}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	two := tuning.Settings{tuning.Cores: tuning.Number(2)}
	decideAll(t, []row{
		{"an unknown job is probed", running, nil, tuning.Probe, tuning.ReasonUnknownProbe, cores(2)},
		{"a closed gate outranks everything", running, func(s *tuning.State) { s.Gate = tuning.ReasonPaused }, tuning.Hold, tuning.ReasonPaused, nil},
		{"observe mode only watches", running, func(s *tuning.State) { s.Policy.Mode = tuning.Observe }, tuning.Hold, tuning.ReasonObserveMode, nil},
		{"recommend mode only says", running, func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, tuning.Hold, tuning.ReasonRecommend, nil},
		{"a dry run only records", running, func(s *tuning.State) { s.Site.DryRun = true }, tuning.Hold, tuning.ReasonDryRun, nil},
		{"what no checkpoint would help asks for none", running, func(s *tuning.State) {
			s.Policy.Checkpoint, s.Next, s.NextReason = nil, nil, tuning.ReasonWholeRuns
		}, tuning.Hold, tuning.ReasonWholeRuns, nil},
		{"nor for a longer time limit", running, func(s *tuning.State) {
			s.LimitLeft, s.Next, s.NextReason = time.Minute, nil, tuning.ReasonNoKnobs
		}, tuning.Hold, tuning.ReasonNoKnobs, nil},
		{"a tuned job without a checkpoint says so", probed, func(s *tuning.State) {
			s.Policy.Checkpoint, s.Next, s.NextReason = nil, nil, tuning.ReasonNoKnobs
		}, tuning.Hold, tuning.ReasonNoCheckpoint, nil},
		{"a job whose knobs have no other value waits for no other job", pending, func(s *tuning.State) {
			s.Policy.Knobs, s.Next, s.NextReason = s.Policy.Knobs[:1], nil, tuning.ReasonNoKnobs
		}, tuning.Hold, tuning.ReasonNoKnobs, nil},
		{"but its memory does", pending, func(s *tuning.State) { s.Next, s.NextReason = nil, tuning.ReasonNoKnobs }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"without knobs there is nothing to do", running, func(s *tuning.State) { s.Policy.Knobs = nil }, tuning.Hold, tuning.ReasonNoKnobs, nil},
		{"a job that reports no progress is left alone", running, func(s *tuning.State) { s.Policy.Progress = tuning.Progress{} }, tuning.Hold, tuning.ReasonNoProgress, nil},
		{"a job without a checkpoint is never touched while it runs", running, func(s *tuning.State) { s.Policy.Checkpoint = nil }, tuning.Hold, tuning.ReasonNoCheckpoint, nil},
		{"one whose owner forbids restarts says so before its checkpoint", running, func(s *tuning.State) { s.NoRequeue, s.Policy.Checkpoint = true, nil }, tuning.Hold, tuning.ReasonNoRequeue, nil},
		{"one that the signal of its checkpoint would end is left alone", running, func(s *tuning.State) { s.Fatal = true }, tuning.Hold, tuning.ReasonFatalSignal, nil},
		{"also while it is disturbed", running, func(s *tuning.State) { s.Fatal, s.Measured = true, tuning.ReasonPolluted }, tuning.Hold, tuning.ReasonFatalSignal, nil},
		{"and is recommended what it would get", running, func(s *tuning.State) { s.NoRequeue, s.Policy.Mode = true, tuning.Recommend }, tuning.Hold, tuning.ReasonRecommend, nil},
		{"why a job is never changed comes before its knobs", running, func(s *tuning.State) { s.Observed, s.Policy.Knobs = "of two tasks", nil }, tuning.Hold, tuning.ReasonUnsupported, nil},
		{"also before it starts", pending, func(s *tuning.State) { s.Observed = "of two tasks" }, tuning.Hold, tuning.ReasonUnsupported, nil},
		{"a site may forbid restarts", running, func(s *tuning.State) { s.Policy.Checkpoint = nil; s.Site.MayRestart = false }, tuning.Hold, tuning.ReasonSiteForbids, nil},
		{"a spent time budget ends tuning", running, func(s *tuning.State) { s.Policy.Budget.Time, s.Elapsed = time.Hour, time.Hour }, tuning.Hold, tuning.ReasonBudgetTime, nil},
		{"a spent energy budget ends tuning", running, func(s *tuning.State) {
			j := tuning.Joules(5)
			s.Policy.Budget.Energy, s.Joules, s.JoulesSource = 5, &j, "rapl"
		}, tuning.Hold, tuning.ReasonBudgetEnergy, nil},
		{"modelled joules enforce no budget", running, func(s *tuning.State) {
			j := tuning.Joules(5)
			s.Policy.Budget.Energy, s.Joules, s.JoulesSource = 5, &j, "modelled"
		}, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"unless the site opts in", running, func(s *tuning.State) {
			j := tuning.Joules(5)
			s.Policy.Budget.Energy, s.Joules, s.JoulesSource, s.Site.EnforceModel = 5, &j, "modelled", true
		}, tuning.Hold, tuning.ReasonBudgetEnergy, nil},
		{"the time limit is near", running, func(s *tuning.State) { s.LimitLeft = time.Minute }, tuning.Hold, tuning.ReasonNearLimit, nil},
		{"the remaining work is unknown", running, func(s *tuning.State) { s.EpochsTotal = 0 }, tuning.Hold, tuning.ReasonNoTotal, nil},
		{"warm-up is waited for", running, func(s *tuning.State) { s.Measured = tuning.ReasonWarmingUp }, tuning.Hold, tuning.ReasonWarmingUp, nil},
		{"a short job is not worth a probe", running, func(s *tuning.State) { s.EpochsTotal = 8 }, tuning.Hold, tuning.ReasonWorthless, nil},
		{"no probes left", running, func(s *tuning.State) { s.Policy.Budget.Probes = 0 }, tuning.Hold, tuning.ReasonBudgetProbes, nil},
		{"probes may use only their share of the epochs", running, func(s *tuning.State) { s.Site.ProbeShare = 0.05 }, tuning.Hold, tuning.ReasonTooShort, nil},
		{"the share of a second probe is spent", probed, func(s *tuning.State) {
			s.Next, s.NextReason, s.ProbeEpochs = cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonNone, 19
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"one disturbed epoch of a probe is borne", probed, func(s *tuning.State) { s.Measured, s.Toll = tuning.ReasonPolluted, disturbedToll(1) }, tuning.Hold, tuning.ReasonPolluted, nil},
		{"a probe is given up after two disturbed epochs", probed, func(s *tuning.State) {
			s.Measured, s.Toll, s.Trials = tuning.ReasonPolluted, disturbedToll(2), s.Trials[:1]
		}, tuning.RollBack, tuning.ReasonPolluted, cores(1)},
		{"a probe that stays disturbed is left for the best setting that was measured", probed, func(s *tuning.State) {
			s.Current = cores(2).With("prefetch", tuning.Number(64))
			s.Measured, s.Toll = tuning.ReasonPolluted, disturbedToll(2)
		}, tuning.Move, tuning.ReasonPolluted, cores(2)},
		{"a disturbed job under its own settings is left alone", running, func(s *tuning.State) { s.Measured, s.Toll = tuning.ReasonPolluted, disturbedToll(30) }, tuning.Hold, tuning.ReasonPolluted, nil},
		{"a probe outside of the stanza is refused", running, func(s *tuning.State) { s.Next = cores(4) }, tuning.Hold, tuning.ReasonSiteForbids, nil},

		{"the next setting is probed", probed, func(s *tuning.State) {
			s.Next, s.NextReason = cores(2).With("prefetch", tuning.Number(64)), tuning.ReasonNone
		}, tuning.Probe, tuning.ReasonProbeNext, cores(2).With("prefetch", tuning.Number(64))},
		{"the last probe was the best and stays", probed, nil, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"an earlier probe was the best", probed, func(s *tuning.State) {
			slow := cores(2).With("prefetch", tuning.Number(64))
			s.Current = slow
			s.Trials = append(s.Trials, tuning.Trial{Settings: slow, Epochs: 2, Seconds: 0.9})
		}, tuning.Move, tuning.ReasonProbeWon, cores(2)},
		{"a gain within the noise is none", probed, func(s *tuning.State) { s.BestError = 0.4; s.Trials[1].Seconds = 1.2 }, tuning.RollBack, tuning.ReasonProbesNoGain, cores(1)},
		{"going back is not worth it for a loss this small", probed, func(s *tuning.State) { s.BestError = 0.4; s.Trials[1].Seconds = 1.005 }, tuning.Hold, tuning.ReasonWorthless, nil},
		{"no restart is left to go back", probed, func(s *tuning.State) {
			s.BestError, s.Trials[1].Seconds, s.Restarts = 0.4, 1.3, 2
		}, tuning.Hold, tuning.ReasonBudgetRestarts, nil},

		{"a known class supplies the setting", running, func(s *tuning.State) {
			s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest}
			s.ClassEffects = []tuning.Effect{effect(two, -0.5)}
		}, tuning.Move, tuning.ReasonClassKnown, cores(2)},
		{"a known class moves no job that could not show afterwards that it was wrong", running, func(s *tuning.State) {
			s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest}
			s.ClassEffects = []tuning.Effect{effect(two, -0.5)}
			s.EpochsTotal, s.EpochSeconds, s.RestartCost = s.EpochsDone+3, 1000, time.Millisecond
		}, tuning.Hold, tuning.ReasonTooShort, nil},
		{"what a known class showed to be dearer is not tried", running, func(s *tuning.State) {
			s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest}
			s.ClassEffects = []tuning.Effect{effect(two, 0.1)}
		}, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"one job's experience is not a class's", running, func(s *tuning.State) {
			s.Class = &tuning.Class{ID: "c1", Reason: tuning.ReasonNearest}
			e := effect(two, -0.5)
			e.Runs = 1
			s.ClassEffects = []tuning.Effect{e}
		}, tuning.Probe, tuning.ReasonClassProbe, nil},
		{"an unknown job takes nothing from classes", running, func(s *tuning.State) { s.ClassEffects = []tuning.Effect{effect(two, -0.5)} }, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"a move that does not repay its restart is not made", running, func(s *tuning.State) {
			s.KindEffects = []tuning.Effect{effect(two, -0.5)}
			s.RestartCost = 12 * time.Second
		}, tuning.Hold, tuning.ReasonTooShort, nil},
		{"a small saving is worthless rather than the job short", running, func(s *tuning.State) {
			small := effect(two, -0.06)
			small.Runs = 20
			s.KindEffects = []tuning.Effect{small}
			s.RestartCost = 2 * time.Second
		}, tuning.Hold, tuning.ReasonWorthless, nil},
		{"no restart is left for a known setting", running, func(s *tuning.State) {
			s.KindEffects, s.Restarts = []tuning.Effect{effect(two, -0.5)}, 2
		}, tuning.Hold, tuning.ReasonBudgetRestarts, nil},
		{"the known setting is in place already", running, func(s *tuning.State) {
			s.KindEffects, s.Current = []tuning.Effect{effect(two, -0.5)}, cores(2)
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a remembered regression is not repeated", running, func(s *tuning.State) {
			s.KindEffects, s.Regressed = []tuning.Effect{effect(two, -0.5)}, []tuning.Settings{cores(2)}
			s.Next, s.NextReason = nil, tuning.ReasonProbesDone
		}, tuning.Hold, tuning.ReasonRemembered, nil},
		{"where a known setting hurt before, others are still tried", running, func(s *tuning.State) {
			s.KindEffects, s.Regressed = []tuning.Effect{effect(two, -0.5)}, []tuning.Settings{cores(2)}
			s.Next = cores(1).With("prefetch", tuning.Number(64))
		}, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"a search that has nothing to try and nothing tried says so", running, func(s *tuning.State) {
			s.Next, s.NextReason = nil, tuning.ReasonProbesDone
		}, tuning.Hold, tuning.ReasonUnlikely, nil},

		{"a pending job of a known kind is changed before it starts", pending, func(s *tuning.State) { s.KindEffects = []tuning.Effect{effect(two, -0.5)} }, tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"a pending job of a new kind starts as it is", pending, nil, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"a pending job that is best as it is starts as it is", pending, func(s *tuning.State) { s.KindEffects = []tuning.Effect{effect(two, 0.2)} }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"an effect that is slower than allowed is not taken", pending, func(s *tuning.State) {
			e := effect(two, -0.5)
			e.LogTime, s.Policy.MaxSlowdown = math.Log(1.3), 1.1
			s.KindEffects = []tuning.Effect{e}
		}, tuning.Hold, tuning.ReasonSlower, nil},
		{"one run supports no small effect", pending, func(s *tuning.State) {
			e := effect(two, -0.07)
			e.Runs, e.SD = 1, 0.001
			s.KindEffects = []tuning.Effect{e}
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"runs that disagree support nothing", pending, func(s *tuning.State) {
			e := effect(two, -0.1)
			e.SD = 0.3
			s.KindEffects = []tuning.Effect{e}
		}, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"hyperparameters are not recalled without a quality guard", pending, func(s *tuning.State) {
			s.Policy.Quality = nil
			s.Returns = &tuning.Returns{Runs: 9, Best: new(effect(tuning.Settings{"batch_size": tuning.Number(128)}, -0.5))}
		}, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"too much memory is given up, with a reserve", pending, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
			s.PeakRSS, s.PeakRuns = 100<<20, 3
		}, tuning.Move, tuning.ReasonRightSized, cores(1).With(tuning.Memory, tuning.Number(150<<20))},
		{"with few runs seen the reserve is larger", pending, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
			s.PeakRSS, s.PeakRuns = 100<<20, 1
		}, tuning.Move, tuning.ReasonRightSized, cores(1).With(tuning.Memory, tuning.Number(300<<20))},
		{"a job that is to keep its memory does", pending, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
			s.PeakRSS, s.PeakRuns, s.MemoryHeld = 100<<20, 3, true
		}, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"memory that ran out before is not tried again", pending, func(s *tuning.State) {
			s.Own = s.Own.With(tuning.Memory, tuning.Number(8<<30))
			s.PeakRSS, s.PeakRuns = 100<<20, 3
			s.Regressed = []tuning.Settings{cores(1).With(tuning.Memory, tuning.Number(200<<20))}
		}, tuning.Hold, tuning.ReasonFirstSeen, nil},

		{"a probe that cost too much quality is left, however fast it was", probed, func(s *tuning.State) {
			s.Refused, s.Best, s.BestGain = tuning.ReasonQualityLost, nil, 0
		}, tuning.RollBack, tuning.ReasonQualityLost, cores(1)},
		{"a kind that a restart ended is not restarted", running, func(s *tuning.State) { s.RestartsEnd = true }, tuning.Hold, tuning.ReasonRestartsEnd, nil},
		{"modelled joules move nothing", running, func(s *tuning.State) {
			s.Policy.Objective, s.JoulesSource = tuning.Energy, tuning.Modelled
		}, tuning.Hold, tuning.ReasonModelled, nil},
		{"unless the site believes the model", running, func(s *tuning.State) {
			s.Policy.Objective, s.JoulesSource, s.Site.EnforceModel, s.RestartCost = tuning.EDP, tuning.Modelled, true, 100*time.Millisecond
		}, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"to the site a probe is a restart too", running, func(s *tuning.State) { s.Site.JobRestarts = 1 }, tuning.Hold, tuning.ReasonSiteCap, nil},
		{"the site's restarts are used up by probes", probed, func(s *tuning.State) {
			s.Site.JobRestarts, s.Best, s.BestGain, s.Trials[1].Seconds = 1, nil, 0, 1.5
		}, tuning.Hold, tuning.ReasonSiteCap, nil},
		{"a regression rolls back", probed, func(s *tuning.State) {
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonRegressed, LogRatio: 0.3, Low: 0.1, High: 0.5}
		}, tuning.RollBack, tuning.ReasonRegressed, cores(1)},
		{"a regression with no restart left is borne", probed, func(s *tuning.State) {
			s.Outcome, s.Restarts = &tuning.Outcome{Verdict: tuning.Regressed, LogRatio: 0.3}, 2
		}, tuning.Hold, tuning.ReasonBudgetRestarts, nil},
		{"a regression at the very end is borne", probed, func(s *tuning.State) {
			s.Outcome, s.EpochsDone = &tuning.Outcome{Verdict: tuning.Regressed, LogRatio: 0.2}, 39
		}, tuning.Hold, tuning.ReasonWorthless, nil},
		{"a regression without a checkpoint is borne", probed, func(s *tuning.State) {
			s.Outcome, s.Policy.Checkpoint = &tuning.Outcome{Verdict: tuning.Regressed, LogRatio: 0.3}, nil
		}, tuning.Hold, tuning.ReasonNoCheckpoint, nil},
	})
}

func TestAdviceIsGivenWhereNothingMayBeDone(t *testing.T) {
	t.Parallel()
	two := tuning.Settings{tuning.Cores: tuning.Number(2)}
	for name, change := range map[string]func(*tuning.State){
		"without a checkpoint": func(s *tuning.State) { s.Policy.Checkpoint = nil },
		"in recommend mode":    func(s *tuning.State) { s.Policy.Mode = tuning.Recommend },
		"in a dry run":         func(s *tuning.State) { s.Site.DryRun = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running()
			s.KindEffects = []tuning.Effect{effect(two, -0.5)}
			change(&s)
			if d := plan.Decide(s); d.Action != tuning.Hold || !d.Advice.Equal(cores(2)) {
				t.Errorf("got %s with advice %s, want hold with advice %s", d.Action, d.Advice, cores(2))
			}
		})
	}
}

func TestWaitsOnlyForWhatPassesWithTime(t *testing.T) {
	t.Parallel()
	for reason, want := range map[tuning.Reason]bool{
		tuning.ReasonWarmingUp: true, tuning.ReasonPaused: true, tuning.ReasonNoSamples: true,
		tuning.ReasonOff: false, tuning.ReasonTooShort: false, tuning.ReasonNoCheckpoint: false,
	} {
		if got := plan.Waits(reason); got != want {
			t.Errorf("Waits(%s) = %v, want %v", reason, got, want)
		}
	}
}
