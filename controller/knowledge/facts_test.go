package knowledge

import (
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

func TestHowLongUntunedJobsOfAKindTook(t *testing.T) {
	t.Parallel()
	took := func(job string, seconds float64, change ...func(*Observation)) Observation {
		o := observation(job, 0)
		o.Trials = []tuning.Trial{reference(trial(onCores(1), seconds, 0)), trial(onCores(2), 1, 0)}
		for _, f := range change {
			f(&o)
		}
		return o
	}
	for _, tc := range []struct {
		name    string
		obs     []Observation
		own     tuning.Settings
		seconds float64
		jobs    int
	}{
		{"nothing is known of a kind that never ran", nil, onCores(1), 0, 0},
		{"the middle of three counts", []Observation{took("a", 10), took("b", 50), took("c", 11)}, onCores(1), 11, 3},
		{"of two the mean", []Observation{took("a", 10), took("b", 20)}, onCores(1), 15, 2},
		{"other settings of the owner are another thing", []Observation{took("a", 10)}, onCores(2), 0, 0},
		{"more memory is another setting too", []Observation{took("a", 10)}, onCores(1).With(tuning.Memory, tuning.Number(1)), 0, 0},
		{
			"a disturbed job does not count",
			[]Observation{took("a", 10), took("b", 90, func(o *Observation) { o.Polluted = true })},
			onCores(1), 10, 1,
		},
		{
			"a tuned trial of the same settings does not count",
			[]Observation{took("a", 10, func(o *Observation) { o.Trials[0].Reference = false })},
			onCores(1), 0, 0,
		},
		{
			"another kind does not count",
			[]Observation{took("a", 10, func(o *Observation) { o.Kind = kind("other") })},
			onCores(1), 0, 0,
		},
	} {
		if seconds, jobs := KindSeconds(tc.obs, Asker{Kind: kind("train"), Own: tc.own}); seconds != tc.seconds || jobs != tc.jobs {
			t.Errorf("%s: %g s over %d jobs, want %g over %d", tc.name, seconds, jobs, tc.seconds, tc.jobs)
		}
	}
}

// What one job put is what the next one gets, from the file too.
func TestTheStoreTellsWhatWasReached(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "k.db")
	for _, put := range []bool{true, false} {
		store, err := Open(path, Options{Wait: 30 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		if put {
			o := observation("a", 0)
			if _, err := store.Put(o); err != nil {
				t.Fatal(err)
			}
		}
		all, err := store.All()
		if seconds, runs := KindSeconds(all, Asker{Kind: kind("train"), Own: onCores(1)}); err != nil || seconds != 10 || runs != 1 {
			t.Errorf("%g s over %d runs (%v), want 10 over 1", seconds, runs, err)
		}
		if len(all) != 1 {
			t.Errorf("%d observations, want 1", len(all))
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatAKindMakesOfItsCoresIsThatOfItsNewestUntunedRun(t *testing.T) {
	t.Parallel()
	left := func(job string, days int, cores float64, change ...func(*Observation)) Observation {
		o := observation(job, days)
		o.Trials = []tuning.Trial{reference(trial(onCores(2), 10, 0)), trial(onCores(1), 12, 0)}
		o.Profiles = []tuning.Profile{{Schema: job, Settings: onCores(cores)}}
		for _, f := range change {
			f(&o)
		}
		return o
	}
	for _, tc := range []struct {
		name string
		obs  []Observation
		want string // job, empty = none
	}{
		{"nothing is known of a kind that never ran", nil, ""},
		{"the newest counts", []Observation{left("b", 5, 2), left("a", 1, 2)}, "b"},
		{"a tuned one does not", []Observation{left("a", 1, 2), left("b", 5, 1)}, "a"},
		{"nor does one with other threads", []Observation{left("a", 1, 2, func(o *Observation) {
			o.Profiles[0].Settings = o.Profiles[0].Settings.With(tuning.Threads, tuning.Number(2))
		})}, ""},
		{"nor a disturbed job", []Observation{left("a", 1, 2, func(o *Observation) { o.Polluted = true })}, ""},
		{"nor a profile of few samples", []Observation{left("a", 1, 2, func(o *Observation) { o.Profiles[0].Flags = []tuning.Flag{tuning.FlagFewSamples} })}, ""},
		{"nor another kind", []Observation{left("a", 1, 2, func(o *Observation) { o.Kind = kind("other") })}, ""},
	} {
		got := ""
		if p := KindProfile(tc.obs, Asker{Kind: kind("train")}); p != nil {
			got = p.Schema
		}
		if got != tc.want {
			t.Errorf("%s: that of %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestAKindKeepsItsMemoryForAWhileAfterOneDiedOfLess(t *testing.T) {
	t.Parallel()
	ran := func(n int) []Observation {
		var out []Observation
		for i := range n {
			out = append(out, observation(string(rune('a'+i)), i))
		}
		return out
	}
	died := func(at int, of tuning.Settings) func([]Observation) {
		return func(obs []Observation) { obs[at].Regressed = []tuning.Settings{of} }
	}
	outgrew := func(obs []Observation) { obs[2].End = tuning.EndMemory }
	less := onCores(1).With(tuning.Memory, tuning.Number(1<<20))
	for _, tc := range []struct {
		name   string
		obs    []Observation
		change func([]Observation)
		want   bool
	}{
		{"none ran", nil, nil, false},
		{"none died", ran(3), nil, false},
		{"the last one died", ran(3), died(2, less), true},
		{"four ran since", ran(7), died(2, less), true},
		{"five ran since", ran(8), died(2, less), false},
		{"the last one outgrew its owner's", ran(3), outgrew, true},
		{"five ran since it outgrew its owner's", ran(8), outgrew, false},
		{"it was worse for its cores alone", ran(3), died(2, onCores(1)), false},
	} {
		if tc.change != nil {
			tc.change(tc.obs)
		}
		if got := MemoryHeld(tc.obs, kind("train")); got != tc.want {
			t.Errorf("%s: %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestAKindWhoseRunARestartEndedIsNotRestartedForAWhile(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]bool{1: true, 5: true, 6: false} {
		var obs []Observation
		for i := range n {
			obs = append(obs, observation(string(rune('a'+i)), i))
		}
		obs[0].Broke = true
		if got := RestartsEnd(obs, kind("train")); got != want {
			t.Errorf("the first of %d: %v, want %v", n, got, want)
		}
	}
}
