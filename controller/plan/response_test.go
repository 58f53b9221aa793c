package plan_test

import (
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

// idling asks for eight cores and uses so many of them. It has 396 epochs of one second left.
func idling(used float64) func() tuning.State {
	return func() tuning.State {
		s := running()
		own := cores(8)
		s.Own, s.Current = own, own
		s.Policy.Knobs[0].Values = []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4), tuning.Number(8)}
		s.Policy.Objective, s.JoulesSource = tuning.Energy, "rapl"
		s.EpochsTotal, s.RestartCost = 400, 2*time.Second
		joules := tuning.Joules(100)
		s.Trials = []tuning.Trial{{Settings: own, Epochs: 3, Seconds: 1, Joules: &joules, Source: "rapl", Reference: true}}
		s.Profile = &tuning.Profile{
			Schema: "sw/1", Settings: tuning.Settings{tuning.Cores: tuning.Number(8)},
			Features: map[string]float64{"cpu_utilisation": used / 8, "io_pressure": 0, "cpu_pressure": 0},
		}
		s.Candidates, s.Next = []tuning.Settings{cores(1), cores(2), cores(4)}, cores(4)
		return s
	}
}

func TestWhatTheFirstEpochsShowMovesAJobAtOnce(t *testing.T) {
	t.Parallel()
	moved := func(seconds float64, limit time.Duration) func(*tuning.State) { // to four cores, with 390 epochs left
		return func(s *tuning.State) {
			joules := tuning.Joules(70)
			s.Current, s.Restarts, s.EpochsDone, s.LimitLeft, s.Site.LimitReserve = cores(4), 1, 10, limit, time.Second
			s.Policy.Budget.Restarts, s.Policy.Budget.Probes = 9, 0
			s.Trials = append(s.Trials, tuning.Trial{Settings: cores(4), Epochs: 5, Seconds: seconds, Joules: &joules, Source: "rapl"})
			s.Best, s.BestGain, s.BestError = &s.Trials[1], -0.35, 0.03
		}
	}
	decideAll(t, []row{
		{"eight cores of which 1.4 work are too many", idling(1.4), nil, tuning.Move, tuning.ReasonPredicted, nil},
		{"one core at work needs one", idling(1), nil, tuning.Move, tuning.ReasonPredicted, cores(1)},
		{"the slowdown that the owner allows bounds how few", idling(1.4), func(s *tuning.State) {
			s.Policy.MaxSlowdown = 1.1
		}, tuning.Move, tuning.ReasonPredicted, cores(4)},
		{"where time counts nothing is given up", idling(1.4), func(s *tuning.State) { s.Policy.Objective = tuning.Time }, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"cores that all seem to work are probed, since some may only wait", idling(8), func(s *tuning.State) { s.Policy.MaxSlowdown = 1.1 }, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"they are left alone where two restarts cost more than that may save", idling(8), func(s *tuning.State) {
			s.Policy.MaxSlowdown, s.RestartCost = 1.1, 20*time.Second
		}, tuning.Hold, tuning.ReasonWorthless, nil},
		{"no single step promises enough, and the steps together do", idling(7.6), func(s *tuning.State) {
			s.Own, s.Current, s.Trials[0].Settings, s.Profile.Settings = cores(16), cores(16), cores(16), cores(16)
			s.Policy.Knobs[0].Values = append(s.Policy.Knobs[0].Values, tuning.Number(16))
			s.Candidates, s.Next, s.Policy.MaxSlowdown = append(s.Candidates, cores(8)), cores(8), 2
		}, tuning.Probe, tuning.ReasonUnknownProbe, cores(4)},
		{"where it waits for storage nothing is sure", idling(1.4), func(s *tuning.State) {
			s.Profile.Features["io_pressure"] = 0.6
			s.Policy.MaxSlowdown = 1.1
		}, tuning.Probe, tuning.ReasonUnknownProbe, nil},
		{"a restart that costs what it saves is not made", idling(1.4), func(s *tuning.State) { s.RestartCost = 5 * time.Minute }, tuning.Hold, tuning.ReasonTooShort, nil},
		{"without a profile its owner is taken to know what it needs", idling(1.4), func(s *tuning.State) { s.Profile = nil }, tuning.Hold, tuning.ReasonUnlikely, nil},
		{"so few cores that an epoch outlasts the time to save are not taken", idling(1.4), func(s *tuning.State) {
			s.EpochSeconds = 50
		}, tuning.Move, tuning.ReasonPredicted, cores(4)},
		{"what it showed after a move is tried, since the last restart is for the way back", idling(1.4), func(s *tuning.State) {
			joules := tuning.Joules(70)
			s.Current, s.Restarts, s.EpochsDone = cores(4), 1, 10
			s.Trials = append(s.Trials, tuning.Trial{Settings: cores(4), Epochs: 5, Seconds: 1.02, Joules: &joules, Source: "rapl"})
			s.Best, s.BestGain, s.BestError = &s.Trials[1], -0.35, 0.03
		}, tuning.Probe, tuning.ReasonPredicted, nil},
		{"what takes longer than the present setting must fit the time limit", idling(1.4), moved(0.9, 6*time.Minute), tuning.Move, tuning.ReasonPredicted, cores(2)},
		{"and may where that is further off", idling(1.4), moved(0.9, 7*time.Minute), tuning.Move, tuning.ReasonPredicted, cores(1)},
		{"the time is that of its epochs, however slow the present setting", idling(2), moved(1.3, 1000*time.Second), tuning.Move, tuning.ReasonPredicted, cores(1)},
		{"nor is a setting that lost quality left for one that takes too long", idling(1.4), func(s *tuning.State) {
			moved(0.8, 5*time.Minute)(s)
			s.Outcome = &tuning.Outcome{Verdict: tuning.Regressed, Reason: tuning.ReasonQualityLost, Tuned: cores(4)}
		}, tuning.RollBack, tuning.ReasonQualityLost, cores(8)},
		{"what made its kind worse is left out", idling(1), func(s *tuning.State) { s.Regressed = []tuning.Settings{cores(1)} }, tuning.Move, tuning.ReasonPredicted, cores(2)},
		{"no budget of restarts, no move", idling(1), func(s *tuning.State) { s.Policy.Budget.Restarts = 0 }, tuning.Hold, tuning.ReasonBudgetRestarts, nil},
	})
}

// recurring is a job that asks for eight cores and waits, and whose kind ran once without a
// checkpoint and used so many of them.
func recurring(used float64) func() tuning.State {
	return func() tuning.State {
		s := idling(used)()
		s.Pending, s.Trials, s.EpochsTotal, s.EpochSeconds = true, nil, 0, 0
		s.Policy.Checkpoint, s.Policy.MaxSlowdown = nil, 1.1
		s.Returns = &tuning.Returns{Runs: 1, Longest: 600}
		return s
	}
}

func TestATrialOfASearchBeginsUnderASettingThatMayServeThoseAfterIt(t *testing.T) {
	t.Parallel()
	trial := func(used float64, objective tuning.Objective) func() tuning.State {
		return func() tuning.State {
			s := recurring(used)()
			s.Policy.Objective, s.Policy.MaxSlowdown, s.Policy.Budget.Probes = objective, 0, 4
			s.Policy.TrialOf = &tuning.Search{Trials: 30, Parallel: 2, Epochs: 20, System: tuning.Pipelined, Share: tuning.Share{Next: 26}}
			s.Returns, s.KindSeconds, s.KindRuns = &tuning.Returns{Room: 1}, 1, 2
			return s
		}
	}
	waiting := func(late float64) func() tuning.State {
		return func() tuning.State {
			s := trial(8, tuning.Time)()
			s.Policy.TrialOf.Share = tuning.Share{Cores: 8, Trials: 4, Serial: .1, Late: late, Next: 10}
			return s
		}
	}
	decideAll(t, []row{
		{"fewer cores may cost less", trial(8, tuning.Cost), nil, tuning.Move, tuning.ReasonTryingTrial, cores(2)},
		{"as long as many trials follow", trial(8, tuning.Cost), func(s *tuning.State) { s.Policy.TrialOf.Share.Next = 0 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"and others have not tried enough", trial(8, tuning.Cost), func(s *tuning.State) { s.Returns.Room = 0 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"not before one of them was measured", trial(8, tuning.Cost), func(s *tuning.State) { s.Profile = nil }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor where they must not take longer", trial(8, tuning.Cost), func(s *tuning.State) { s.Policy.MaxSlowdown = 1.1 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor where that may exceed the time limit", trial(8, tuning.Cost), func(s *tuning.State) { s.LimitLeft = 25 * time.Second }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor where it is unknown how long it runs", trial(8, tuning.Cost), func(s *tuning.State) { s.LimitLeft, s.KindSeconds = time.Hour, 0 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor where a job without a checkpoint may take too long", trial(8, tuning.Cost), func(s *tuning.State) { s.Policy.MaxSlowdown = 2 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor where an epoch may outlast the time to save", trial(8, tuning.Cost), func(s *tuning.State) {
			s.Policy.Checkpoint, s.KindSeconds = &tuning.Checkpoint{Grace: time.Minute}, 30
		}, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"what is not sure is not recommended", trial(8, tuning.Cost), func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"no faster with fewer cores, none tried", trial(8, tuning.Time), nil, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"those that wait for cores try fewer side by side", waiting(.1), nil, tuning.Move, tuning.ReasonTryingTrial, cores(2)},
		{"the last ones too", waiting(.1), func(s *tuning.State) { s.Policy.TrialOf.Share.Next = 0 }, tuning.Move, tuning.ReasonTryingTrial, cores(4)},
		{"but not one that may end alone", waiting(1), func(s *tuning.State) { s.Policy.TrialOf.Share.Next = 0 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"nor with room for less than the cores of a try", waiting(.1), func(s *tuning.State) { s.Returns.Room = .1 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"what is sure is begun at once", trial(1, tuning.Cost), nil, tuning.Move, tuning.ReasonPredictedStart, cores(1)},
		{"a job of its own is not for others", trial(8, tuning.Cost), func(s *tuning.State) { s.Policy.TrialOf = nil }, tuning.Hold, tuning.ReasonFirstSeen, nil},
	})
}

func TestATrialGoesBackToTheCoresOfItsOwnerOnceNoOtherWaitsForThem(t *testing.T) {
	t.Parallel()
	running := func(used float64, share tuning.Share) func() tuning.State {
		return func() tuning.State {
			s := idling(used)()
			s.Policy.Objective, s.Current, s.Trials = tuning.Time, cores(2), []tuning.Trial{{Settings: cores(2), Epochs: 5, Seconds: 4}}
			s.Policy.TrialOf = &tuning.Search{Trials: 30, Parallel: 2, Epochs: s.EpochsTotal, Method: tuning.Random, Share: share}
			return s
		}
	}
	alone, among := tuning.Share{Cores: 8, Trials: 1, Serial: 1}, tuning.Share{Cores: 8, Trials: 4, Serial: .1, Next: 10}
	decideAll(t, []row{
		{"the last one, which makes use of all", running(8, alone), nil, tuning.RollBack, tuning.ReasonNoTrialWaits, cores(8)},
		{"not while others wait", running(8, among), nil, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor what makes no use of them", running(1, alone), nil, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor where little is left", running(8, alone), func(s *tuning.State) { s.EpochsTotal = s.EpochsDone + 1 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor without a restart left", running(8, alone), func(s *tuning.State) { s.Policy.Budget.Restarts = 0 }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"nor before its core use is known", running(8, alone), func(s *tuning.State) { s.Profile = nil }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
		{"a job of its own stays where it is", running(8, alone), func(s *tuning.State) { s.Policy.TrialOf = nil }, tuning.Hold, tuning.ReasonAlreadyBest, nil},
	})
}

func TestWhatAnEarlierRunShowsIsGivenToAJobBeforeItsStart(t *testing.T) {
	t.Parallel()
	ran := func(ratio, time float64) func(*tuning.State) {
		return func(s *tuning.State) {
			s.Returns.Seen = []tuning.Effect{{Settings: cores(4), LogRatio: ratio, LogTime: time, SD: 0.14, Runs: 1}}
		}
	}
	decideAll(t, []row{
		{"for 1.4 cores at work four are enough, within the slowdown", recurring(1.4), nil, tuning.Move, tuning.ReasonPredictedStart, cores(4)},
		{"one core at work needs one", recurring(1), nil, tuning.Move, tuning.ReasonPredictedStart, cores(1)},
		{"what the slowdown may not allow is not begun", recurring(2), nil, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"cores that all work are not given up unseen", recurring(8), nil, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"without a profile nothing is predicted", recurring(1), func(s *tuning.State) { s.Profile = nil }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"where it waits for storage nothing is sure", recurring(1), func(s *tuning.State) { s.Profile.Features["io_pressure"] = 0.6 }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"what made its kind worse is left out", recurring(1.4), func(s *tuning.State) { s.Regressed = []tuning.Settings{cores(4)} }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"a run that bore it out is followed by the next", recurring(1.4), ran(-0.5, 0), tuning.Move, tuning.ReasonPredictedStart, cores(4)},
		{"a run that took longer leaves nothing sure", recurring(1), ran(0.3, 0.9), tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"what is known goes before what is predicted", recurring(1.4), func(s *tuning.State) {
			best := effect(cores(2), -0.5)
			s.Returns.Best = &best
		}, tuning.Move, tuning.ReasonRecalled, cores(2)},
		{"a slower setting must fit its time limit", recurring(1.4), func(s *tuning.State) { s.LimitLeft = 11 * time.Minute }, tuning.Hold, tuning.ReasonFirstSeen, nil},
		{"and may where that is far", recurring(1.4), func(s *tuning.State) { s.LimitLeft = time.Hour }, tuning.Move, tuning.ReasonPredictedStart, cores(4)},
		{"of a job of another size less is sure", recurring(1), func(s *tuning.State) {
			s.Policy.MaxSlowdown, s.Profile.Settings, s.Profile.Features["cpu_utilisation"] = 1.25, cores(4), 0.27
		}, tuning.Move, tuning.ReasonPredictedStart, cores(2)},
		{"unless one like it ran", recurring(1), func(s *tuning.State) {
			s.Policy.MaxSlowdown, s.Profile.Settings, s.Profile.Features["cpu_utilisation"], s.KindRuns = 1.25, cores(4), 0.27, 1
		}, tuning.Move, tuning.ReasonPredictedStart, cores(1)},
		{"what is recommended is not begun", recurring(1), func(s *tuning.State) { s.Policy.Mode = tuning.Recommend }, tuning.Hold, tuning.ReasonRecommend, nil},
		{"the untuned share stays untuned", recurring(1), func(s *tuning.State) { s.Gate = tuning.ReasonControlGroup }, tuning.Hold, tuning.ReasonControlGroup, nil},
	})
}
