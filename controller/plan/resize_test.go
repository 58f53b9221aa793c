package plan_test

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

func withCores(n float64) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(n)} }

// shared is a job on two cores that may have one to four, with 90 epochs of 10 s left.
func shared() tuning.State {
	own := withCores(2)
	p := tuning.DefaultPolicy()
	p.Mode = tuning.Apply
	p.Knobs = []tuning.Knob{{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4)}}}
	p.Progress.Report = true
	p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85}
	site := tuning.DefaultSite()
	site.MaxMode, site.Allocate = tuning.Apply, 4
	return tuning.State{
		Policy: p, Site: site,
		Standing:       tuning.Standing{Own: own, Current: own, EpochsDone: 10, EpochsTotal: 100, EpochSeconds: 10},
		RestartOutlook: tuning.RestartOutlook{RestartCost: 5 * time.Second},
		Findings:       tuning.Findings{Trials: []tuning.Trial{{Settings: own, Reference: true, Epochs: 5, Seconds: 10}}},
	}
}

func TestASizeKeepsTheThreadsThatWereMeasuredWithIt(t *testing.T) {
	s := shared()
	s.Policy.Knobs = append(s.Policy.Knobs, tuning.Knob{Name: tuning.Threads, Env: "T", Follows: tuning.Cores})
	one := withCores(1).With(tuning.Threads, tuning.Number(1))
	all := s.Own.With(tuning.Threads, s.Own[tuning.Cores])
	s.Current = one
	s.Trials = append(s.Trials, tuning.Trial{Settings: all, Epochs: 5, Seconds: 6}, tuning.Trial{Settings: one, Epochs: 5, Seconds: 11})
	if !slices.ContainsFunc(plan.Sizes(s), func(x plan.Size) bool { return x.Settings.Equal(all) }) {
		t.Errorf("sizes %v, want %s among them", plan.Sizes(s), all)
	}
}

func TestWhichSizesAJobMayHaveAndWhetherItIsMoved(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(s *tuning.State)
		to     float64
		sizes  int
		want   tuning.Reason // of a hold; none: it is moved
	}{
		{"it shrinks for others", func(*tuning.State) {}, 1, 3, ""},
		{"it grows", func(*tuning.State) {}, 4, 3, ""},
		{"its last restart is kept to grow again", func(s *tuning.State) { s.Restarts = 1 }, 4, 2, ""},
		{"without restarts it stays", func(s *tuning.State) { s.Restarts = 2 }, 1, 1, tuning.ReasonBudgetRestarts},
		{"before an epoch ended it stays", func(s *tuning.State) { s.Trials, s.Measured = nil, tuning.ReasonWarmingUp }, 1, 1, tuning.ReasonWarmingUp},
		{"it does not shrink into its time limit", func(s *tuning.State) { s.LimitLeft = 25 * time.Minute }, 4, 2, ""},
		{"it does not become slower than its owner allows", func(s *tuning.State) { s.Policy.MaxSlowdown = 1.1 }, 4, 2, ""},
		{"a paused job stays", func(s *tuning.State) { s.Gate = tuning.ReasonPaused }, 1, 1, tuning.ReasonPaused},
		{"what killed it is no size", func(s *tuning.State) { s.Regressed = []tuning.Settings{withCores(1)} }, 4, 2, ""},
		{"a waiting job has all sizes and starts with any", func(s *tuning.State) { s.Pending, s.Trials, s.Restarts = true, nil, 9 }, 1, 3, ""},
		{"it does not grow where a restart would queue for longer", func(s *tuning.State) { s.Wait = time.Hour }, 4, 3, tuning.ReasonLongQueue},
		{"nor where that is unknown", func(s *tuning.State) { s.Crowded = "others wait" }, 4, 3, tuning.ReasonUnknownQueue},
		{"a dry run moves nothing", func(s *tuning.State) { s.Site.DryRun = true }, 1, 3, tuning.ReasonDryRun},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := shared()
			test.change(&s)
			if sizes := plan.Sizes(s); len(sizes) != test.sizes {
				t.Errorf("%d sizes, want %d: %v", len(sizes), test.sizes, sizes)
			}
			s.Allotted = withCores(test.to)
			d := plan.Decide(s)
			moved := d.Action == tuning.Move && d.Reason == tuning.ReasonAllocation && d.Settings.Equal(s.Allotted)
			if moved != (test.want == "") || test.want != "" && d.Reason != test.want {
				t.Errorf("it decides to %s since %s, want %q", d.Action, d.Reason, test.want)
			}
		})
	}
}
