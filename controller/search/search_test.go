package search

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/tuning"
)

//go:fix inline
func nums(xs ...float64) []tuning.Value {
	out := make([]tuning.Value, 0, len(xs))
	for _, x := range xs {
		out = append(out, tuning.Number(x))
	}
	return out
}

func policy(knobs ...tuning.Knob) tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Knobs = knobs
	return p
}

func guarded(p tuning.Policy) tuning.Policy {
	p.Quality = &tuning.Quality{Direction: "max", MaxLoss: .01}
	return p
}

func cores(xs ...float64) tuning.Knob { return tuning.Knob{Name: tuning.Cores, Values: nums(xs...)} }

func batch(xs ...float64) tuning.Knob {
	return tuning.Knob{Name: "batch", Env: "BATCH", Values: nums(xs...), Default: tuning.Number(32)}
}

func own() tuning.Settings {
	return tuning.Settings{tuning.Cores: tuning.Number(1), "batch": tuning.Number(32)}
}

// same is the knob of a stanza that says quality=same.
func same(k tuning.Knob) tuning.Knob {
	k.Quality = tuning.QualitySame
	return k
}

func knobs(space []Dimension) []string {
	var out []string
	for _, d := range space {
		out = append(out, d.Knob)
	}
	return out
}

func TestSpace(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		p    tuning.Policy
		own  tuning.Settings
		want []Dimension
	}{
		{"no knobs give no space", policy(), own(), nil},
		{
			"cores come first whatever the order written",
			policy(batch(32, 64), cores(1, 2)), own(),
			[]Dimension{
				{Knob: "cores", Values: nums(1, 2), Own: tuning.Number(1)},
				{Knob: "batch", Learns: true, Values: nums(32, 64), Own: tuning.Number(32)},
			},
		},
		{
			"the own value is in the space though the policy does not list it",
			policy(cores(2, 4)), own(),
			[]Dimension{{Knob: "cores", Values: nums(1, 2, 4), Own: tuning.Number(1)}},
		},
		{"a knob with nothing but the own value is left out", policy(cores(1)), own(), nil},
		{
			"a knob that the job file does not show has its default",
			policy(batch(64)),
			tuning.Settings{},
			[]Dimension{{Knob: "batch", Learns: true, Values: nums(32, 64), Own: tuning.Number(32)}},
		},
		{
			"following knobs, memory, GPUs and the power limit are not searched",
			policy(
				tuning.Knob{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores},
				tuning.Knob{Name: tuning.Memory, Values: nums(1<<20, 1<<30)},
				tuning.Knob{Name: tuning.GPUs, Values: nums(1, 2)},
				tuning.Knob{Name: tuning.PowerLimit, Values: nums(100, 200)},
			), own(), nil,
		},
		{
			"a follower's own bounds bound the one it follows",
			policy(cores(1, 2, 4), tuning.Knob{Name: tuning.Threads, Follows: tuning.Cores, Values: nums(1, 2)}), own(),
			[]Dimension{{Knob: "cores", Values: nums(1, 2), Own: tuning.Number(1)}},
		},
		{
			"a range is cut into as many values as asked for",
			policy(tuning.Knob{Name: "lr", Min: tuning.Number(.001), Max: tuning.Number(.1), Scale: tuning.Log, Default: tuning.Number(.02)}),
			tuning.Settings{},
			[]Dimension{{Knob: "lr", Learns: true, Values: nums(.001, .01, .02, .1), Own: tuning.Number(.02)}},
		},
		{
			"words keep their order behind numbers",
			policy(tuning.Knob{Name: "optimizer", Values: []tuning.Value{tuning.Word("sgd"), tuning.Number(0), tuning.Word("adam"), tuning.Word("sgd")}, Default: tuning.Word("sgd")}),
			tuning.Settings{},
			[]Dimension{{Knob: "optimizer", Learns: true, Values: []tuning.Value{tuning.Number(0), tuning.Word("sgd"), tuning.Word("adam")}, Own: tuning.Word("sgd")}},
		},
	}
	near := cmp.Comparer(func(a, b tuning.Value) bool {
		return a == b || a.IsNumber() && b.IsNumber() && math.Abs(a.Float()-b.Float()) < 1e-9
	})
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, Space(tt.p, tt.own, 3), near); diff != "" {
				t.Errorf("Space (-want +got):\n%s", diff)
			}
		})
	}
}

// world measures a setting: seconds and joules per epoch.
type world func(s tuning.Settings) (seconds, joules float64)

func (w world) trial(s, own tuning.Settings) tuning.Trial {
	sec, j := w(s)
	return tuning.Trial{
		Settings: s, Epochs: 2, Seconds: sec, SDLog: .01, Joules: new(tuning.Joules(j)), Source: "rapl", Reference: s.Equal(own),
	}
}

// explore probes until the study ends and returns what was tried, in order.
func explore(p tuning.Policy, own tuning.Settings, w world) (tried []string, s Study, end tuning.Reason) {
	s = Study{Policy: p, Own: own, Space: Space(p, own, 4), Trials: []tuning.Trial{w.trial(own, own)}}
	for range 1000 {
		next, reason := s.Next()
		if reason != tuning.ReasonNone {
			return tried, s, reason
		}
		tried = append(tried, next.Key())
		s.Trials = append(s.Trials, w.trial(next, own))
	}
	return tried, s, tuning.ReasonNone
}

// amdahl is a job with the given parallel share; a core burns 10 W, the
// machine 5 W, and larger batches save a little.
func amdahl(parallel float64) world {
	return func(s tuning.Settings) (float64, float64) {
		c := s[tuning.Cores].Float()
		sec := 10 * (1 - parallel + parallel/c) * (1 - .1*math.Log2(max(s["batch"].Float(), 32)/32))
		return sec, sec * (5 + 10*c)
	}
}

func TestTheOrderOfProbes(t *testing.T) {
	t.Parallel()
	limit := func(p tuning.Policy, n int) tuning.Policy { p.Budget.Probes = n; return p }
	energy := func(p tuning.Policy) tuning.Policy { p.Objective = tuning.Energy; return p }
	tests := []struct {
		name  string
		p     tuning.Policy
		own   tuning.Settings
		w     world
		tried []string
		end   tuning.Reason
	}{
		{"without knobs there is nothing to try", policy(), own(), amdahl(1), nil, tuning.ReasonNoKnobs},
		{
			"a hyperparameter without a quality guard is not tried", policy(batch(32, 64)), own(), amdahl(1),
			nil, tuning.ReasonNoQualityGuard,
		},
		{
			"parallel work begins with the most cores and then fewer, until fewer are worse",
			policy(cores(1, 2, 4, 8)), own(), amdahl(1),
			[]string{"batch=32 cores=8", "batch=32 cores=4"},
			tuning.ReasonProbesDone,
		},
		{
			"serial work on few cores finds that more do not help",
			energy(policy(cores(1, 2, 4))), own(), amdahl(0),
			[]string{"batch=32 cores=4", "batch=32 cores=2"},
			tuning.ReasonProbesDone,
		},
		{
			"going down ends where fewer cores are slower than allowed",
			func() tuning.Policy { p := energy(policy(cores(1, 2, 4, 8))); p.MaxSlowdown = 1.5; return p }(),
			own().With(tuning.Cores, tuning.Number(8)), amdahl(1),
			[]string{"batch=32 cores=4"},
			tuning.ReasonProbesDone,
		},
		{
			"a hyperparameter is not tried within a run, whatever guards it", guarded(policy(batch(32, 64))), own(), amdahl(1),
			nil, tuning.ReasonWholeRuns,
		},
		{
			"nor is it beside cores",
			limit(guarded(policy(batch(16, 32, 64, 128), cores(1, 2))), 10), own(), amdahl(1),
			[]string{"batch=32 cores=2"},
			tuning.ReasonProbesDone,
		},
		{
			"other knobs come after cores, outwards from the own value, on the best cores found",
			limit(policy(same(batch(16, 32, 64, 128)), cores(1, 2)), 10), own(), amdahl(1),
			[]string{"batch=32 cores=2", "batch=64 cores=2", "batch=128 cores=2"},
			tuning.ReasonProbesDone,
		},
		{
			"a value that hardly lost is tried again when another knob has moved",
			limit(policy(same(batch(32, 64)), cores(1, 2)), 10), own(), amdahl(.1),
			[]string{"batch=32 cores=2", "batch=64 cores=2", "batch=64 cores=1"},
			tuning.ReasonProbesDone,
		},
		{
			"the budget ends the probes", limit(policy(cores(1, 2, 4), same(batch(32, 64, 128))), 2), own(), amdahl(1),
			[]string{"batch=32 cores=4", "batch=32 cores=2"},
			tuning.ReasonBudgetProbes,
		},
		{
			"threads that follow the cores go with them",
			policy(cores(1, 2), tuning.Knob{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores}),
			tuning.Settings{tuning.Cores: tuning.Number(1), tuning.Threads: tuning.Number(1)},
			amdahl(1),
			[]string{"cores=2 threads=2"},
			tuning.ReasonProbesDone,
		},
		{
			"threads that the file leaves to the program do not change with another knob",
			policy(cores(2), tuning.Knob{Name: tuning.Threads, Env: "OMP_NUM_THREADS", Follows: tuning.Cores}, same(batch(32, 64))), own().With(tuning.Cores, tuning.Number(2)), amdahl(1),
			[]string{"batch=64 cores=2"},
			tuning.ReasonProbesDone,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tried, _, end := explore(tt.p, tt.own, tt.w)
			if diff := cmp.Diff(tt.tried, tried); diff != "" || end != tt.end {
				t.Errorf("ended with %s, want %s; tried (-want +got):\n%s", end, tt.end, diff)
			}
		})
	}
}

func TestWhatFailedElsewhereIsNotTried(t *testing.T) {
	t.Parallel()
	p := policy(cores(1, 2, 4))
	s := Study{Policy: p, Own: own(), Space: Space(p, own(), 4), Avoid: []tuning.Settings{own().With(tuning.Cores, tuning.Number(4))}}
	if next, reason := s.Next(); reason != tuning.ReasonProfiling {
		t.Errorf("before its owner's settings were measured: %v (%s)", next, reason)
	}
	s.Trials = []tuning.Trial{amdahl(1).trial(own(), own())}
	next, reason := s.Next()
	if reason != tuning.ReasonNone || next[tuning.Cores] != tuning.Number(2) {
		t.Errorf("Next = %v (%s), want cores=2", next, reason)
	}
}

func TestAFailedTrialSaysNothingAboutItsNeighbours(t *testing.T) {
	t.Parallel()
	p := policy(cores(1, 2, 4))
	own := own().With(tuning.Cores, tuning.Number(4))
	s := Study{Policy: p, Own: own, Space: Space(p, own, 4), Trials: []tuning.Trial{
		amdahl(0).trial(own, own),
		{Settings: own.With(tuning.Cores, tuning.Number(2)), Failed: true},
	}}
	next, _ := s.Next()
	if next[tuning.Cores] != tuning.Number(1) {
		t.Errorf("Next = %v, want cores=1", next)
	}
}
