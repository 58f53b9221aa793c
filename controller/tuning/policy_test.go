package tuning_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func numbers(fs ...float64) []tuning.Value { return tuning.Each(fs, tuning.Number) }

// anyKnob draws a knob as the stanza makes them: values, a range, or a follower.
func anyKnob(name string, leads []string) *rapid.Generator[tuning.Knob] {
	return rapid.Custom(func(t *rapid.T) tuning.Knob {
		k := tuning.Knob{Name: name}
		number := rapid.Map(rapid.Float64Range(0.01, 5000), func(f float64) tuning.Value { return tuning.Number(math.Round(f*4) / 4) })
		switch kind := rapid.IntRange(0, 3).Draw(t, "kind"); {
		case kind == 0 && len(leads) > 0:
			k.Follows = rapid.SampledFrom(leads).Draw(t, "follows")
			if rapid.Bool().Draw(t, "bounded") {
				k.Max = number.Draw(t, "max")
			}
		case kind == 1:
			k.Values = rapid.SliceOfN(number, 1, 5).Draw(t, "values")
			if rapid.Bool().Draw(t, "with a word") {
				k.Values = append(k.Values, tuning.Word("auto"))
			}
		case kind == 2: // an open knob allows nothing
		default:
			k.Min = number.Draw(t, "min")
			k.Scale = rapid.SampledFrom(tuning.Scales()).Draw(t, "scale")
			if rapid.Bool().Draw(t, "closed") {
				k.Max = tuning.Number(k.Min.Float() + rapid.Float64Range(0, 5000).Draw(t, "width"))
			}
		}
		return k
	})
}

func TestModesAreOrdered(t *testing.T) {
	t.Parallel()
	for i, m := range tuning.Modes() {
		for j, limit := range tuning.Modes() {
			if got, want := m.AtMost(limit), tuning.Modes()[min(i, j)]; got != want {
				t.Errorf("%s at most %s is %s, want %s", m, limit, got, want)
			}
		}
	}
}

func TestTheClosedListsHoldEachWordOnce(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]int{
		"modes": unique(tuning.Modes()), "objectives": unique(tuning.Objectives()), "scales": unique(tuning.Scales()),
		"system knobs": unique(tuning.SystemKnobs()),
	} {
		if words < 3 {
			t.Errorf("%s: %d different words", name, words)
		}
	}
	if unique(tuning.Objectives()) != len(tuning.Objectives()) {
		t.Errorf("objectives %v: want each once", tuning.Objectives())
	}
}

func TestWhatChangesWhatAJobLearns(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	p := tuning.Policy{Knobs: []tuning.Knob{
		{Name: tuning.Cores, Values: numbers(1, 2)},
		{Name: tuning.Threads, Env: "T", Follows: tuning.Cores},
		{Name: "ranks", Env: "R", Follows: tuning.Cores},
		{Name: "batch", Env: "B", Values: numbers(32, 64), Default: n(32)},
		{Name: "micro", Env: "M", Follows: "batch"},
		{Name: "workers", Env: "W", Values: numbers(1, 2), Default: n(1), Quality: tuning.QualitySame},
		{Name: "prefetch", Env: "P", Follows: "workers"},
	}}
	for name, want := range map[string]bool{
		tuning.Cores: false, tuning.Threads: false, tuning.PowerLimit: false, "ranks": false, "batch": true, "micro": true,
		"workers": false, "prefetch": false, "a knob of another stanza": true,
	} {
		if p.Learns(name) != want {
			t.Errorf("%s changes what the job learns: %t, want %t", name, !want, want)
		}
	}
	own := tuning.Settings{tuning.Cores: n(2), "batch": n(32), "workers": n(1)}
	for _, tc := range []struct {
		name string
		s    tuning.Settings
		want bool
	}{
		{"the same", own, false},
		{"fewer cores and more workers", tuning.Settings{tuning.Cores: n(1), "workers": n(2), "prefetch": n(2)}, false},
		{"another batch", own.With("batch", n(64)), true},
		{"a batch that is not named", tuning.Settings{tuning.Cores: n(1)}, false},
		{"a knob of another stanza", own.With("old", n(1)), true},
	} {
		if p.Relearns(own, tc.s) != tc.want {
			t.Errorf("%s: %t, want %t", tc.name, !tc.want, tc.want)
		}
	}
	if p.Relearns(tuning.Settings{}, tuning.Settings{"batch": n(32)}) {
		t.Error("the default is what an owner has who does not say so")
	}
}

func TestATargetIsReachedFromTheSideThatIsWorse(t *testing.T) {
	t.Parallel()
	at := 0.5
	for _, tc := range []struct {
		q    tuning.Quality
		v    float64
		want bool
	}{
		{tuning.Quality{Direction: "max"}, 1, false},
		{tuning.Quality{Direction: "max", Target: &at}, 0.49, false},
		{tuning.Quality{Direction: "max", Target: &at}, 0.5, true},
		{tuning.Quality{Direction: "min", Target: &at}, 0.51, false},
		{tuning.Quality{Direction: "min", Target: &at}, 0.5, true},
		{tuning.Quality{Direction: "min", Target: &at}, math.NaN(), false},
	} {
		if got := tc.q.Reaches(tc.v); got != tc.want {
			t.Errorf("%+v at %g: reached %t", tc.q, tc.v, got)
		}
	}
}

func unique[T ~string](words []T) int {
	seen := map[T]bool{}
	for _, w := range words {
		seen[w] = true
	}
	return len(seen)
}

func TestAllows(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	list := tuning.Knob{Name: "cores", Values: numbers(1, 2, 4)}
	words := tuning.Knob{Name: "optimizer", Values: []tuning.Value{tuning.Word("sgd"), tuning.Word("adam")}}
	closed := tuning.Knob{Name: "lr", Min: n(0.1), Max: n(1)}
	for _, c := range []struct {
		name  string
		knob  tuning.Knob
		value tuning.Value
		want  bool
	}{
		{"a value of the list", list, n(2), true},
		{"a value between those of the list", list, n(3), false},
		{"nothing", list, tuning.Value{}, false},
		{"a word of the list", words, tuning.Word("adam"), true},
		{"a word that is not in the list", words, tuning.Word("lamb"), false},
		{"the lower end", closed, n(0.1), true},
		{"the upper end", closed, n(1), true},
		{"below the range", closed, n(0.09), false},
		{"above the range", closed, n(1.1), false},
		{"a word in a range", closed, tuning.Word("0.5"), false},
		{"a range open above", tuning.Knob{Min: n(1)}, n(1e9), true},
		{"a range open below", tuning.Knob{Max: n(1)}, n(-1e9), true},
		{"beyond a range open below", tuning.Knob{Max: n(1)}, n(2), false},
		{"a knob without values or range", tuning.Knob{Name: "x"}, n(1), false},
		{"a knob that follows another takes what that has", tuning.Knob{Name: "threads", Follows: "cores"}, n(7), true},
		{"a follower with an upper end", tuning.Knob{Follows: "cores", Max: n(4)}, n(7), false},
	} {
		if got := c.knob.Allows(c.value); got != c.want {
			t.Errorf("%s: %+v allows %v: %v, want %v", c.name, c.knob, c.value, got, c.want)
		}
	}
}

func TestCandidates(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	for _, c := range []struct {
		name string
		knob tuning.Knob
		n    int
		want []tuning.Value
	}{
		{"a list is taken whole", tuning.Knob{Name: "cores", Values: numbers(1, 2, 4)}, 2, numbers(1, 2, 4)},
		{"a linear range", tuning.Knob{Name: "x", Min: n(0), Max: n(1), Scale: tuning.Linear}, 5, numbers(0, 0.25, 0.5, 0.75, 1)},
		{"the ends alone", tuning.Knob{Name: "x", Min: n(0.1), Max: n(0.7)}, 2, numbers(0.1, 0.7)},
		{"doublings", tuning.Knob{Name: "batch_size", Min: n(32), Max: n(256), Scale: tuning.Pow2}, 5, numbers(32, 64, 128, 256)},
		{"doublings below the end", tuning.Knob{Name: "batch_size", Min: n(3), Max: n(13), Scale: tuning.Pow2}, 5, numbers(3, 6, 12)},
		{"too many doublings are thinned", tuning.Knob{Name: "b", Min: n(1), Max: n(256), Scale: tuning.Pow2}, 3, numbers(1, 16, 256)},
		{"system knobs are whole", tuning.Knob{Name: "cores", Min: n(1), Max: n(6)}, 3, numbers(1, 4, 6)},
		{"no value comes twice", tuning.Knob{Name: "cores", Min: n(1), Max: n(2)}, 5, numbers(1, 2)},
		{"whole numbers inside of fractional ends", tuning.Knob{Name: "cores", Min: n(1.2), Max: n(3.7)}, 5, numbers(2, 3)},
		{"no whole number in the range", tuning.Knob{Name: "cores", Min: n(1.2), Max: n(1.7)}, 5, nil},
		{"an open range", tuning.Knob{Name: "x", Min: n(1)}, 5, nil},
		{"an empty range", tuning.Knob{Name: "x", Min: n(2), Max: n(1)}, 5, nil},
		{"doublings of nothing", tuning.Knob{Name: "x", Min: n(0), Max: n(1), Scale: tuning.Pow2}, 5, nil},
		{"fewer than two of a range", tuning.Knob{Name: "x", Min: n(1), Max: n(2)}, 1, nil},
	} {
		if diff := cmp.Diff(c.want, c.knob.Candidates(c.n)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestALogarithmicRangeHasEqualRatios(t *testing.T) {
	t.Parallel()
	k := tuning.Knob{Name: "lr", Min: tuning.Number(1e-4), Max: tuning.Number(1e-1), Scale: tuning.Log}
	got := k.Candidates(4)
	for i, want := range []float64{1e-4, 1e-3, 1e-2, 1e-1} {
		if math.Abs(got[i].Float()/want-1) > 1e-9 {
			t.Errorf("candidate %d is %v, want %g", i, got[i], want)
		}
	}
	if got[0] != k.Min || got[3] != k.Max {
		t.Errorf("the ends are %v and %v, want them exactly", got[0], got[3])
	}
}

func TestCandidatesAreAllowedOrderedAndFew(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"cores", "memory", "lr"}).Draw(t, "name")
		k := anyKnob(name, nil).Draw(t, "knob")
		n := rapid.IntRange(0, 12).Draw(t, "n")
		got := k.Candidates(n)
		for i, v := range got {
			if !k.Allows(v) {
				t.Fatalf("%+v does not allow its candidate %v of %v", k, v, got)
			}
			if len(k.Values) > 0 {
				continue
			}
			if i > 0 && v.Float() <= got[i-1].Float() {
				t.Fatalf("%+v: candidates %v do not ascend", k, got)
			}
			if tuning.IsSystem(name) && v.Float() != math.Trunc(v.Float()) {
				t.Fatalf("%+v: candidate %v is not whole", k, v)
			}
		}
		if len(k.Values) == 0 && len(got) > n {
			t.Fatalf("%+v: %d candidates, want at most %d", k, len(got), n)
		}
		if len(got) > 0 && len(k.Values) > 0 {
			got[0] = tuning.Word("written")
			if k.Values[0] == got[0] {
				t.Fatal("the candidates share the knob's own list")
			}
		}
	})
}

func TestWhatAnOwnerLeavesToTheProgramStaysSo(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	p := tuning.Policy{Knobs: []tuning.Knob{{Name: "cores", Values: numbers(1, 2, 4)}, {Name: "threads", Follows: "cores"}, {Name: "batch"}}}
	left, set := tuning.Settings{"cores": n(4)}, tuning.Settings{"cores": n(4), "threads": n(1)}
	for name, c := range map[string]struct{ own, s, want tuning.Settings }{
		"where another knob changes":             {left, tuning.Settings{"batch": n(8)}, tuning.Settings{"cores": n(4), "batch": n(8)}},
		"where the cores are named as they were": {left, tuning.Settings{"cores": n(4)}, left},
		"unless the cores change":                {left, tuning.Settings{"cores": n(2)}, tuning.Settings{"cores": n(2), "threads": n(2)}},
		"unless it is named":                     {left, tuning.Settings{"threads": n(4)}, tuning.Settings{"cores": n(4), "threads": n(4)}},
		"but what the owner sets follows":        {set, tuning.Settings{"batch": n(8)}, tuning.Settings{"cores": n(4), "threads": n(4), "batch": n(8)}},
	} {
		if diff := cmp.Diff(c.want, p.Over(c.own, c.s)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestCompleteSetsFollowers(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	p := tuning.Policy{Knobs: []tuning.Knob{
		{Name: "cores", Values: numbers(1, 2, 4)}, {Name: "threads", Follows: "cores"}, {Name: "workers", Follows: "absent"},
	}}
	in := tuning.Settings{"cores": n(4), "threads": n(1)}
	if diff := cmp.Diff(tuning.Settings{"cores": n(4), "threads": n(4)}, p.Complete(in)); diff != "" {
		t.Errorf("completed (-want +got):\n%s", diff)
	}
	if in["threads"] != n(1) {
		t.Error("the settings that were handed in changed")
	}
}

func TestPermits(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	p := tuning.Policy{Knobs: []tuning.Knob{
		{Name: "cores", Values: numbers(1, 2, 4)},
		{Name: "threads", Follows: "cores"},
		{Name: "workers", Follows: "cores", Max: n(2)},
		{Name: "stray", Follows: "absent"},
		{Name: "lr", Min: n(0.1), Max: n(1)},
	}}
	own := tuning.Settings{"cores": n(3), "threads": n(3), "lr": n(5), "seed": n(1)}
	for _, c := range []struct {
		name string
		to   tuning.Settings
		knob string
	}{
		{"the owner's own settings, whatever they are", own, ""},
		{"an allowed value", own.With("lr", n(0.5)), ""},
		{"a value outside the range", own.With("lr", n(2)), "lr"},
		{"a value outside the list", own.With("cores", n(5)), "cores"},
		{"what no knob is for", own.With("seed", n(2)), "seed"},
		{"a follower with its leader", own.With("cores", n(4)).With("threads", n(4)), ""},
		{"a follower without its leader", own.With("threads", n(4)), "threads"},
		{"a follower whose leader's value is not allowed", own.With("cores", n(5)).With("threads", n(5)), "cores"},
		{"a follower beyond its own end", own.With("cores", n(4)).With("threads", n(4)).With("workers", n(4)), "workers"},
		{"a follower within its own end", own.With("cores", n(2)).With("threads", n(2)).With("workers", n(2)), ""},
		{"a follower of no knob", own.With("stray", n(1)), "stray"},
		{"a knob taken away", own.Only(func(k string) bool { return k != "lr" }), "lr"},
	} {
		knob, ok := p.Permits(own, c.to)
		if knob != c.knob || ok != (c.knob == "") {
			t.Errorf("%s: knob %q, ok %v; want %q", c.name, knob, ok, c.knob)
		}
	}
}

func TestEverySetOfCandidatesIsPermitted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := tuning.Policy{Knobs: []tuning.Knob{
			anyKnob("cores", nil).Draw(t, "cores"), {Name: "threads", Follows: "cores"}, anyKnob("lr", nil).Draw(t, "lr"),
		}}
		own := tuning.Settings{"cores": tuning.Number(3), "threads": tuning.Number(3)}
		to := own
		for _, name := range []string{"cores", "lr"} {
			k, _ := p.Knob(name)
			if cs := k.Candidates(5); len(cs) > 0 {
				to = to.With(name, rapid.SampledFrom(cs).Draw(t, name))
			}
		}
		if knob, ok := p.Permits(own, p.Complete(to)); !ok {
			t.Fatalf("%v is refused for %s", p.Complete(to), knob)
		}
	})
}

func TestTheDefaultPolicy(t *testing.T) {
	t.Parallel()
	p := tuning.DefaultPolicy()
	if p.Mode != tuning.Recommend || p.Objective != tuning.Time || p.Profile != (tuning.ProfileSpec{WarmupEpochs: 1, Epochs: 2}) ||
		p.Budget.Restarts != 2 || p.Budget.Probes != 4 || p.Checkpoint != nil || p.Quality != nil || p.Progress.IsSet() {
		t.Errorf("default policy %+v", p)
	}
	if _, ok := p.Knob("cores"); ok {
		t.Error("the default policy has a knob")
	}
	if !(tuning.Progress{Pattern: "x"}).IsSet() || !(tuning.Progress{Report: true}).IsSet() || (tuning.Progress{Total: 5}).IsSet() {
		t.Error("progress is set by a pattern or a report, and by nothing else")
	}
}

func TestSmallNouns(t *testing.T) {
	t.Parallel()
	if got := (tuning.JobKind{Owner: "alice", Name: "train", Fingerprint: "1f2e"}).String(); got != "alice/train@1f2e" {
		t.Errorf("kind %q", got)
	}
	if (tuning.Class{NearestID: "c1"}).Known() || !(tuning.Class{ID: "c1"}).Known() {
		t.Error("a class is known by its id alone")
	}
	start := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	if got := (tuning.Epoch{Start: start, End: start.Add(1500 * time.Millisecond)}).Seconds(); got != 1.5 {
		t.Errorf("epoch of %g s, want 1.5", got)
	}
	for _, c := range []struct {
		state tuning.State
		want  float64
	}{
		{tuning.State{Standing: tuning.Standing{EpochsTotal: 10, EpochsDone: 4, EpochSeconds: 2}}, 12},
		{tuning.State{Standing: tuning.Standing{EpochsDone: 4, EpochSeconds: 2}}, 0},
		{tuning.State{Standing: tuning.Standing{EpochsTotal: 10, EpochsDone: 4}}, 0},
	} {
		if got := c.state.Remaining(); got != c.want {
			t.Errorf("remaining %g, want %g", got, c.want)
		}
	}
}
