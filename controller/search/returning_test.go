package search

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func joulesOf(v float64) *tuning.Joules {
	j := tuning.Joules(v)
	return &j
}

// past is a whole run of ten epochs under so many cores.
func past(cores, seconds, joules float64, source string) tuning.PastRun {
	s := tuning.Settings{tuning.Cores: tuning.Number(cores)}
	return tuning.PastRun{
		Began: s, End: tuning.EndReached, Epochs: 10,
		Trials: []tuning.Trial{{Settings: s, Epochs: 9, Seconds: seconds, Joules: joulesOf(joules), Source: source}},
	}
}

func times(n int, p tuning.PastRun) []tuning.PastRun {
	return slices.Repeat([]tuning.PastRun{p}, n)
}

// returning is a job that asks for eight cores and may have fewer; six of its returns
// may try.
func returning(runs ...[]tuning.PastRun) Returning {
	p := policy(tuning.Knob{Name: tuning.Cores, Values: nums(1, 2, 4, 8)}, tuning.Knob{Name: tuning.Threads, Env: "T", Follows: tuning.Cores})
	p.Objective, p.Budget.Returns = tuning.Energy, 6
	own := tuning.Settings{tuning.Cores: tuning.Number(8), tuning.Threads: tuning.Number(8)}
	return Returning{Policy: p, Own: own, Space: Space(p, own, 5), Past: slices.Concat(runs...)}
}

func TestThreadsThatProvedBetterStayWhenAnotherKnobIsTried(t *testing.T) {
	t.Parallel()
	p := policy(cores(4, 8), tuning.Knob{Name: tuning.Threads, Env: "T", Follows: tuning.Cores}, same(batch(32, 64)))
	set := own().With(tuning.Cores, tuning.Number(8))
	s := Study{Policy: p, Own: set, Space: Space(p, set, 5), Trials: []tuning.Trial{
		{Settings: set, Reference: true, Epochs: 5, Seconds: 100}, {Settings: set.With(tuning.Threads, tuning.Number(8)), Epochs: 5, Seconds: 50},
	}}
	for _, c := range s.All() {
		if c[tuning.Threads] != c[tuning.Cores] {
			t.Errorf("%s would give the threads back to the program", c)
		}
	}
}

func TestABetterBatchDoesNotMakeThreadsFollow(t *testing.T) {
	t.Parallel()
	p := policy(cores(4, 8), tuning.Knob{Name: tuning.Threads, Env: "T", Follows: tuning.Cores}, same(batch(32, 64)))
	set := tuning.Settings{tuning.Cores: tuning.Number(8)} // neither batch nor threads are known
	s := Study{Policy: p, Own: set, Space: Space(p, set, 5), Trials: []tuning.Trial{
		{Settings: set, Reference: true, Epochs: 5, Seconds: 100}, {Settings: set.With("batch", tuning.Number(64)), Epochs: 5, Seconds: 50},
	}}
	for _, c := range s.All()[1:] { // the first is that of a thread per core
		if c[tuning.Cores] == set[tuning.Cores] && c[tuning.Threads].IsSet() {
			t.Errorf("%s changes the threads as well", c)
		}
	}
}

// Runs with a thread per core are not those of an owner who leaves the threads to the program.
func TestRunsWithOtherThreadsAreNotTheOwners(t *testing.T) {
	t.Parallel()
	took := func(cores, threads, seconds float64) []tuning.PastRun {
		p := past(cores, seconds, 100, "rapl")
		if threads > 0 {
			p.Began = p.Began.With(tuning.Threads, tuning.Number(threads))
			p.Trials[0].Settings = p.Began
		}
		return times(3, p)
	}
	r := returning(took(8, 0, 100), took(8, 8, 50), took(4, 4, 80))
	r.Policy.Objective = tuning.Time
	r.Own = tuning.Settings{tuning.Cores: tuning.Number(8)}
	r.Space = Space(r.Policy, r.Own, 5)
	if out := r.Propose(); len(out.Seen) != 1 || !(out.Seen[0].LogRatio < -0.15) {
		t.Errorf("seen of four cores: %+v, want it faster by a fifth", out.Seen)
	}
}

func TestWhatTheNextReturnMayTry(t *testing.T) {
	t.Parallel()
	untuned := times(6, past(8, 10, 100, "rapl"))
	cheaper := times(6, past(4, 12, 60, "rapl"))
	tried := func(n int) func(*Returning) {
		return func(r *Returning) {
			for i := range n {
				r.Past[i].Trying = true
			}
		}
	}
	for _, tc := range []struct {
		name   string
		r      Returning
		change func(*Returning)
		next   string // settings, empty = none
		reason tuning.Reason
		best   string
	}{
		{"no run was seen: nothing", returning(), nil, "", tuning.ReasonFirstSeen, ""},
		{"the owner's settings come first", returning(cheaper), nil, "", tuning.ReasonOwnFirst, ""},
		{"half the cores are tried next, and what follows them", returning(untuned), nil, "cores=4 threads=4", "", ""},
		{"what is known to be better is returned", returning(untuned, cheaper, times(1, past(2, 30, 200, "rapl"))), nil, "", tuning.ReasonAlreadyBest, "cores=4 threads=4"},
		{"every return that may try has tried", returning(untuned), tried(6), "", tuning.ReasonBudgetReturns, ""},
		{"those under way count as tries", returning(untuned), func(r *Returning) {
			r.Policy.Budget.Returns = 1
			r.Underway = []tuning.Settings{{tuning.Cores: tuning.Number(4)}}
		}, "", tuning.ReasonBudgetReturns, ""},
		{"what another tries now is not tried twice", returning(untuned), func(r *Returning) {
			r.Underway = []tuning.Settings{{tuning.Cores: tuning.Number(4)}}
		}, "cores=2 threads=2", "", ""},
		{"without a budget nothing is tried, and what is known is returned", returning(untuned, cheaper), func(r *Returning) { r.Policy.Budget.Returns = 0 }, "", tuning.ReasonBudgetReturns, "cores=4 threads=4"},
		{"what hurt is not tried", returning(untuned), func(r *Returning) {
			r.Avoid = []tuning.Settings{{tuning.Cores: tuning.Number(4)}, {tuning.Cores: tuning.Number(2)}, {tuning.Cores: tuning.Number(1)}}
		}, "", tuning.ReasonAlreadyBest, ""},
		{"what a run failed under is not tried", returning(untuned, []tuning.PastRun{{
			Began: tuning.Settings{tuning.Cores: tuning.Number(4)}, End: tuning.EndFailed, Trying: true,
		}}), func(r *Returning) {
			r.Avoid = []tuning.Settings{{tuning.Cores: tuning.Number(2)}, {tuning.Cores: tuning.Number(1)}}
		}, "", tuning.ReasonAlreadyBest, ""},
		{"computed joules decide nothing", returning(times(6, past(8, 10, 100, tuning.Modelled)), times(6, past(4, 12, 60, tuning.Modelled))), nil, "", tuning.ReasonModelled, ""},
		{"unless the site says so", returning(times(6, past(8, 10, 100, tuning.Modelled)), times(6, past(4, 12, 60, tuning.Modelled)), times(1, past(2, 30, 200, tuning.Modelled))), func(r *Returning) {
			r.Modelled = true
		}, "", tuning.ReasonAlreadyBest, "cores=4 threads=4"},
		{"joules of two sources are not compared", returning(untuned, times(4, past(4, 10, 10, "bmc"))), nil, "cores=4 threads=4", "", ""},
		{"a cost needs no joules", returning(times(6, past(8, 10, 1, "rapl")), times(6, past(4, 12, 1, "bmc")), times(1, past(2, 60, 1, ""))), func(r *Returning) {
			r.Policy.Objective = tuning.Cost
		}, "", tuning.ReasonAlreadyBest, "cores=4 threads=4"},
		{"and charges for those of all runs", returning(times(6, past(8, 10, 1e6, "rapl")), times(6, past(4, 12, 9e6, "rapl"))), func(r *Returning) {
			r.Policy.Objective, r.Policy.Tariff = tuning.Cost, tuning.Tariff{CoreHour: 1, KWh: 1, Unit: "EUR"}
		}, "", tuning.ReasonAlreadyBest, ""},
		{"other memory is the same setting", returning(untuned, times(6, tuning.PastRun{
			Began: tuning.Settings{tuning.Cores: tuning.Number(4), tuning.Memory: tuning.Number(1 << 30)}, End: tuning.EndReached,
			Trials: []tuning.Trial{{Settings: tuning.Settings{tuning.Cores: tuning.Number(4), tuning.Memory: tuning.Number(1 << 30)}, Epochs: 9, Seconds: 10, Joules: joulesOf(60), Source: "rapl"}},
		}), times(1, past(2, 30, 200, "rapl"))), nil, "", tuning.ReasonAlreadyBest, "cores=4 threads=4"},
		{"another value of a knob that is not searched is another job", returning(untuned, times(6, tuning.PastRun{
			Trials: []tuning.Trial{{Settings: tuning.Settings{tuning.Cores: tuning.Number(4), tuning.GPUs: tuning.Number(1)}, Epochs: 9, Seconds: 1, Joules: joulesOf(1), Source: "rapl"}},
		})), nil, "cores=4 threads=4", "", ""},
		{"the site allows no such value any more", returning(untuned, cheaper, times(1, past(2, 30, 200, "rapl"))), func(r *Returning) {
			r.Policy.Knobs[0].Values = nums(1, 8)
			r.Space = Space(r.Policy, r.Own, 5)
		}, "", tuning.ReasonAlreadyBest, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := tc.r
			r.Past = slices.Clone(r.Past)
			r.Policy.Knobs = slices.Clone(r.Policy.Knobs)
			if tc.change != nil {
				tc.change(&r)
			}
			got := r.Propose()
			best := ""
			if got.Best != nil {
				best = got.Best.Settings.Key()
			}
			if got.Next.Key() != tc.next || got.Reason != tc.reason || best != tc.best {
				t.Errorf("got %+v (best %s), want next %q, reason %q, best %q", got, best, tc.next, tc.reason, tc.best)
			}
		})
	}
}

func TestAProposalKeepsItsBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, own := drawPolicy(t)
		p.Budget.Returns = rapid.IntRange(0, 5).Draw(t, "returns")
		r := Returning{Policy: p, Own: own, Space: Space(p, own, 5), Modelled: rapid.Bool().Draw(t, "modelled")}
		setting := func(name string) tuning.Settings {
			s := own.Clone()
			for _, d := range r.Space {
				if rapid.Bool().Draw(t, name+" has "+d.Knob) {
					s[d.Knob] = rapid.SampledFrom(d.Values).Draw(t, name+" "+d.Knob)
				}
			}
			return p.Complete(s)
		}
		// A knob at its default and one that is not named are one setting.
		named := func(s tuning.Settings) string {
			s = s.Clone()
			for _, d := range r.Space {
				if !own[d.Knob].IsSet() && s[d.Knob] == d.Own {
					delete(s, d.Knob)
				}
			}
			return s.Key()
		}
		measured := map[string]bool{}
		for range rapid.IntRange(0, 10).Draw(t, "runs") {
			run := tuning.PastRun{
				Began: setting("began"), Trying: rapid.IntRange(0, 3).Draw(t, "trying") == 0, Epochs: rapid.IntRange(0, 9).Draw(t, "epochs"),
				End:     rapid.SampledFrom([]tuning.End{"", tuning.EndReached, tuning.EndReached, tuning.EndFailed, tuning.EndCut}).Draw(t, "end"),
				Machine: rapid.SampledFrom([]string{"", "m"}).Draw(t, "machine"), Age: rapid.Float64Range(0, 500).Draw(t, "age"),
			}
			if rapid.Bool().Draw(t, "has quality") {
				q := rapid.SampledFrom([]float64{.5, .9}).Draw(t, "quality")
				run.Quality = &q
			}
			for range rapid.IntRange(0, 2).Draw(t, "trials") {
				s := setting("trial")
				measured[named(s)] = true
				run.Trials = append(run.Trials, tuning.Trial{
					Settings: s, Epochs: rapid.IntRange(0, 5).Draw(t, "measured"), Seconds: rapid.SampledFrom([]float64{0, 1, 2, 50}).Draw(t, "seconds"),
					Joules: joulesOf(rapid.SampledFrom([]float64{0, 1, 2, 50}).Draw(t, "joules")),
					Source: rapid.SampledFrom([]string{"rapl", tuning.Modelled}).Draw(t, "source"),
				})
			}
			r.Past = append(r.Past, run)
		}
		for range rapid.IntRange(0, 2).Draw(t, "avoid") {
			r.Avoid = append(r.Avoid, setting("bad"))
		}
		for range rapid.IntRange(0, 2).Draw(t, "underway") {
			r.Underway = append(r.Underway, setting("underway"))
		}
		got, again := r.Propose(), r.Propose()
		if !got.Next.Equal(again.Next) || got.Expected != again.Expected || got.Reason != again.Reason {
			t.Fatalf("%+v and then %+v", got, again)
		}
		spent := len(r.Underway)
		for _, run := range r.Past {
			if run.Trying {
				spent++
			}
		}
		if got.Spent != spent {
			t.Fatalf("spent %d, want %d", got.Spent, spent)
		}
		if got.Best != nil {
			r.within(t, got.Best.Settings)
			if !measured[named(got.Best.Settings)] {
				t.Fatalf("%v is the best and was never measured", got.Best)
			}
		}
		if len(got.Next) == 0 {
			if got.Reason == tuning.ReasonNone {
				t.Fatal("nothing to try, and no reason")
			}
			return
		}
		if spent >= p.Budget.Returns || got.Reason != tuning.ReasonNone || math.IsNaN(got.Expected) || math.IsNaN(got.Error) {
			t.Fatalf("%+v beyond the budget of %d", got, p.Budget.Returns)
		}
		r.within(t, got.Next)
	})
}

// within fails if a return may not be given the settings.
func (r Returning) within(t *rapid.T, s tuning.Settings) {
	t.Helper()
	if knob, ok := r.Policy.Permits(r.Own, s); !ok {
		t.Fatalf("%v: %s is outside of what the policy permits", s, knob)
	}
	for _, bad := range slices.Concat(r.Avoid, r.Underway) {
		if s.Equal(bad) && !s.Equal(r.Own) {
			t.Fatalf("%v made jobs worse, or is tried by another", s)
		}
	}
	for _, name := range r.Own.Diff(s) {
		if name == tuning.Memory || r.Policy.Learns(name) && r.Policy.Quality == nil {
			t.Fatalf("%v: %s is not to be tried", s, name)
		}
	}
}

func TestRunsUnderASettingAreComparedWithThoseOfItsOwner(t *testing.T) {
	t.Parallel()
	untuned, cheaper := past(8, 10, 100, "rapl"), past(4, 10, 40, "rapl")
	for _, tc := range []struct {
		name    string
		r       Returning
		change  func(*Returning)
		verdict tuning.Verdict
		reason  tuning.Reason
		runs    int
	}{
		{"one run of each tells much from little", returning(times(1, untuned), times(1, cheaper)), nil, tuning.Improved, tuning.ReasonImproved, 1},
		{"and not little from nothing", returning(times(1, untuned), times(1, past(4, 10, 80, "rapl"))), nil, tuning.Inconclusive, tuning.ReasonInconclusive, 1},
		{"more runs do", returning(times(4, untuned), times(4, past(4, 10, 80, "rapl"))), nil, tuning.Improved, tuning.ReasonImproved, 4},
		{"ninefold is worse", returning(times(1, untuned), times(1, past(4, 90, 900, "rapl"))), nil, tuning.Regressed, tuning.ReasonRegressed, 1},
		{"what is cheaper may be slower than allowed", returning(times(1, untuned), times(1, past(4, 30, 20, "rapl"))), func(r *Returning) { r.Policy.MaxSlowdown = 1.1 }, tuning.Regressed, tuning.ReasonSlower, 1},
		{"runs on two machines are not compared", returning(times(1, untuned), times(1, cheaper)), func(r *Returning) { r.Past[1].Machine = "other" }, "", "", 0},
		{"without an untuned run nothing is", returning(times(2, cheaper)), nil, "", "", 0},
		{"without one under the setting nothing is", returning(times(2, untuned)), nil, "", "", 0},
		{"computed joules are no claim", returning(times(1, past(8, 10, 100, tuning.Modelled)), times(1, past(4, 10, 40, tuning.Modelled))), nil, "", "", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := tc.r
			if tc.change != nil {
				tc.change(&r)
			}
			got, ok := r.Stands(tuning.Settings{tuning.Cores: tuning.Number(4), tuning.Threads: tuning.Number(4)})
			if ok != (tc.verdict != "") || got.Verdict != tc.verdict || got.Reason != tc.reason || got.Runs != tc.runs {
				t.Fatalf("%v, %+v; want %s, %s by %d runs", ok, got, tc.verdict, tc.reason, tc.runs)
			}
			if seen := r.Propose().Seen; ok && (len(seen) != 1 || seen[0].LogRatio != got.LogRatio || seen[0].Runs != tc.runs) {
				t.Errorf("the planner gets %+v", seen)
			}
			if ok && !(got.Low < got.LogRatio && got.LogRatio < got.High) {
				t.Errorf("%g is not between %g and %g", got.LogRatio, got.Low, got.High)
			}
		})
	}
	if got := returning(times(1, untuned), times(1, past(4, 50, 100, "rapl"))).Propose().Longest; got != 100 {
		t.Errorf("the longest untuned run took %g s, want 100", got)
	}
}
