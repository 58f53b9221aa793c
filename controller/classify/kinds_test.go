package classify_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

// kind is one line of what was measured on a two-core virtual machine without
// hardware counters: seven small programs, two threads, three input sizes, two
// runs each, windows of one second. Means, and standard deviations over sizes,
// runs and windows, in the units of the features; where none was noted, a small
// one is assumed.
type kind struct {
	name                                   string
	faults, voluntary, involuntary, system [2]float64
	cpus, resident, read                   [2]float64
}

func kinds() []kind {
	return []kind{
		{"dense", [2]float64{2.3, 1.1}, [2]float64{5.3, 1.1}, [2]float64{4.2, 0.3}, [2]float64{1.3, 1.0}, [2]float64{1.96, 0.03}, [2]float64{8.6, 0.4}, [2]float64{0.9, 0.2}},
		{"kmeans", [2]float64{4.3, 1.3}, [2]float64{5.1, 0.4}, [2]float64{4.2, 0.3}, [2]float64{1.2, 1.1}, [2]float64{1.97, 0.03}, [2]float64{9.3, 0.2}, [2]float64{0.9, 0.2}},
		{"stream", [2]float64{1.3, 1.0}, [2]float64{4.9, 0.5}, [2]float64{4.2, 0.3}, [2]float64{1.4, 1.0}, [2]float64{1.96, 0.03}, [2]float64{11.8, 0.6}, [2]float64{0.9, 0.2}},
		{"jacobi", [2]float64{3.4, 1.1}, [2]float64{7.7, 1.0}, [2]float64{4.5, 0.3}, [2]float64{3.4, 1.1}, [2]float64{1.74, 0.10}, [2]float64{9.3, 0.4}, [2]float64{1.0, 0.2}},
		{"bfs", [2]float64{8.2, 0.4}, [2]float64{6.7, 0.5}, [2]float64{4.7, 0.3}, [2]float64{3.7, 0.6}, [2]float64{1.88, 0.05}, [2]float64{10.4, 0.5}, [2]float64{1.1, 0.2}},
		{"sort", [2]float64{8.5, 0.4}, [2]float64{5.2, 0.5}, [2]float64{4.5, 0.3}, [2]float64{2.6, 0.7}, [2]float64{1.96, 0.03}, [2]float64{10.3, 0.6}, [2]float64{1.1, 0.2}},
		{"hash", [2]float64{1.0, 1.4}, [2]float64{7.6, 0.1}, [2]float64{7.5, 0.3}, [2]float64{6.6, 0.3}, [2]float64{1.85, 0.05}, [2]float64{8.9, 0.3}, [2]float64{23.0, 0.3}},
	}
}

type quietFeature struct {
	name     string
	mean, sd float64
}

// quiet lists the features in which these kinds do not differ.
func quiet() []quietFeature {
	return []quietFeature{
		{"major_faults", 0, 0.1},
		{"cpu_migrations", 1.5, 0.7},
		{"write_chars", 4, 0.7},
		{"read_bytes", 0, 0.1},
		{"write_bytes", 2, 2},
		{"rss_growth", 0, 0.1},
		{"threads_per_core", 1.2, 0.15},
		{"cpu_pressure", 0.03, 0.03},
		{"memory_pressure", 0, 0.001},
		{"io_pressure", 0, 0.01},
	}
}

// simulation draws profiles of kinds. A share of the measured variance is the
// input's: a trend over the sizes, in its own direction for each kind and feature.
// The rest is noise of each window.
type simulation struct {
	rng       *rand.Rand
	sizeShare float64
	windows   int
	quietOnes bool // also the features in which these kinds do not differ
	trend     map[string]float64
}

func (s *simulation) direction(name string) float64 {
	if _, ok := s.trend[name]; !ok {
		s.trend[name] = float64(2*s.rng.IntN(2) - 1)
	}
	return s.trend[name]
}

// profile is the mean over the windows of one run with an input of size 0, 1 or 2.
func (s *simulation) profile(k kind, size int) tuning.Profile {
	sums := map[string]float64{}
	level := (float64(size) - 1) * math.Sqrt(1.5) // variance 1 over the sizes
	draw := func(name string, v [2]float64, share float64) float64 {
		return v[0] + v[1]*(math.Sqrt(share)*level*s.direction(k.name+name)+math.Sqrt(1-share)*s.rng.NormFloat64())
	}
	for range s.windows {
		voluntary := math.Max(0, draw("voluntary", k.voluntary, s.sizeShare))
		involuntary := math.Max(0, draw("involuntary", k.involuntary, s.sizeShare))
		add := func(name string, v float64) { sums[name] += v / float64(s.windows) }
		add("minor_faults", math.Max(0, draw("faults", k.faults, s.sizeShare)))
		add("context_switches", math.Log(math.Exp(voluntary)+math.Exp(involuntary)-1))
		add("voluntary_ratio", voluntary-involuntary)
		add("system_share", math.Max(0, draw("system", k.system, s.sizeShare)))
		add("cpu_utilisation", math.Min(1, draw("cpus", k.cpus, s.sizeShare)/2))
		add("rss", draw("resident", k.resident, 0.95))
		add("read_chars", math.Max(0, draw("read", k.read, s.sizeShare)))
		if s.quietOnes {
			for _, f := range quiet() {
				add(f.name, f.mean+f.sd*s.rng.NormFloat64())
			}
		}
	}
	return tuning.Profile{Schema: "sw/1", Machine: "vm/2", Features: sums, Settings: cores(2)}
}

func cores(n float64) tuning.Settings {
	return tuning.Settings{tuning.Cores: tuning.Number(n), tuning.Threads: tuning.Number(n)}
}

// tally is what came of one run for each kind as training and a second run, with
// another input, as a question; the file hasher was never learned.
type tally struct{ own, unknown, other, hashUnknown, merged, questions float64 }

// learn fits one run of each kind but those left out, and tells on which input
// each was trained and which class it went to.
func (s *simulation) learn(leftOut ...string) (m *classify.Model, trainedOn map[string]int, classOf map[string]string, err error) {
	trainedOn, classOf = map[string]int{}, map[string]string{}
	var samples []classify.Sample
	for _, k := range kinds() {
		if slices.Contains(leftOut, k.name) {
			continue
		}
		trainedOn[k.name] = s.rng.IntN(3)
		samples = append(samples, classify.Sample{Profile: s.profile(k, trainedOn[k.name]), Run: "run-" + k.name, Kind: k.name})
	}
	if m, err = classify.Fit(samples); err != nil {
		return nil, nil, nil, err
	}
	for _, g := range m.Strata[0].Groups {
		for _, k := range g.Kinds {
			classOf[k] = g.ID
		}
	}
	return m, trainedOn, classOf, nil
}

func simulate(seed uint64, sizeShare float64, quietOnes bool, windows int) *simulation {
	return &simulation{
		rng: rand.New(rand.NewPCG(seed, 99)), sizeShare: sizeShare, windows: windows, quietOnes: quietOnes, trend: map[string]float64{},
	}
}

func question(sim *simulation) (tally, error) {
	all := kinds()
	known, stranger := all[:len(all)-1], all[len(all)-1]
	m, trainedOn, classOf, err := sim.learn(stranger.name)
	if err != nil {
		return tally{}, err
	}
	out := tally{merged: float64(len(known) - len(m.Strata[0].Groups))}
	for _, i := range sim.rng.Perm(len(known))[:5] {
		k := known[i]
		size := (trainedOn[k.name] + 1 + sim.rng.IntN(2)) % 3
		out.questions++
		switch got := m.Classify(sim.profile(k, size)); got.ID {
		case classOf[k.name]:
			out.own++
		case "":
			out.unknown++
		default:
			out.other++
		}
	}
	if m.Classify(sim.profile(stranger, sim.rng.IntN(3))).Reason == tuning.ReasonTooFar {
		out.hashUnknown++
	}
	return out, nil
}

func TestSecondRunsAreRecognisedAndAStrangerIsUnknown(t *testing.T) {
	t.Parallel()
	const seeds = 50
	for _, c := range []struct {
		sizeShare float64
		quietOnes bool
		windows   int
		asserted  bool
	}{
		{0.3, false, 4, true},
		{0.3, true, 4, true},
		{0.5, false, 4, true},
		{0.5, true, 4, true},
		{0.7, true, 4, true},
		{0.5, true, 2, false},
		{0.9, true, 4, false},
	} {
		t.Run(fmt.Sprintf("%.0f%% of the variance from the input, %d windows, quiet features %v", 100*c.sizeShare, c.windows, c.quietOnes), func(t *testing.T) {
			t.Parallel()
			var sum tally
			for seed := range uint64(seeds) {
				got, err := question(simulate(seed, c.sizeShare, c.quietOnes, c.windows))
				if err != nil {
					t.Fatal(err)
				}
				sum.own += got.own
				sum.unknown += got.unknown
				sum.other += got.other
				sum.merged += got.merged
				sum.questions += got.questions
				sum.hashUnknown += got.hashUnknown
			}
			t.Logf("own or shared class %.2f, unknown %.2f, another class %.2f; stranger unknown %.2f; %.1f of 6 kinds share a class",
				sum.own/sum.questions, sum.unknown/sum.questions, sum.other/sum.questions, sum.hashUnknown/seeds, sum.merged/seeds)
			if c.asserted && sum.own < 0.8*sum.questions {
				t.Errorf("only %v of %v second runs are recognised", sum.own, sum.questions)
			}
			if sum.hashUnknown < 0.95*seeds {
				t.Errorf("the stranger is unknown in %v of %v cases only", sum.hashUnknown, seeds)
			}
		})
	}
}

// Programs that allocate all the time are nothing like those that do not: where
// neither of the two was learned, both are mostly unknown.
func TestAWholeSortOfProgramsThatWasNotLearnedIsMostlyUnknown(t *testing.T) {
	t.Parallel()
	known, asked := 0, 0
	for seed := range uint64(100) {
		sim := simulate(seed, 0.5, true, 4)
		m, _, _, err := sim.learn("bfs", "sort")
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kinds() {
			if k.name != "bfs" && k.name != "sort" {
				continue
			}
			asked++
			if m.Classify(sim.profile(k, sim.rng.IntN(3))).Known() {
				known++
			}
		}
	}
	t.Logf("%d of %d are taken for something else", known, asked)
	if known > asked/5 {
		t.Errorf("%d of %d are taken for something else", known, asked)
	}
}

// support is how one more run of each kind is classified, and how strangers of an
// unknown kind are, after so many runs of each kind were learned.
type support struct{ own, other, ambiguous, ambiguousWrong, questions, strangers, taken float64 }

func supported(t *testing.T, runs int) support {
	t.Helper()
	stranger := []string{"bfs", "sort", "hash"}
	var sum support
	for seed := range uint64(240) {
		sim := simulate(seed, 0.5, true, 4)
		var samples []classify.Sample
		for _, k := range kinds() {
			for r := range runs {
				if !slices.Contains(stranger, k.name) {
					samples = append(samples, classify.Sample{Profile: sim.profile(k, sim.rng.IntN(3)), Run: fmt.Sprintf("%s-%d", k.name, r), Kind: k.name})
				}
			}
		}
		m, err := classify.Fit(samples)
		if err != nil {
			t.Fatal(err)
		}
		of := func(id string) []string {
			for _, g := range m.Strata[0].Groups {
				if g.ID == id {
					return g.Kinds
				}
			}
			return nil
		}
		for _, k := range kinds() {
			c := m.Classify(sim.profile(k, sim.rng.IntN(3)))
			switch {
			case slices.Contains(stranger, k.name):
				sum.strangers++
				if c.Known() {
					sum.taken++
				}
				continue
			case c.Reason == tuning.ReasonAmbiguous:
				sum.ambiguous++
				if !slices.Contains(of(c.NearestID), k.name) {
					sum.ambiguousWrong++
				}
			case c.Known() && slices.Contains(of(c.ID), k.name):
				sum.own++
			case c.Known():
				sum.other++
			}
			sum.questions++
		}
	}
	t.Logf("%d runs of each: own %.3f, another %.3f, ambiguous %.3f (of which wrong %.3f); strangers taken %.3f", runs,
		sum.own/sum.questions, sum.other/sum.questions, sum.ambiguous/sum.questions, sum.ambiguousWrong/sum.questions, sum.taken/sum.strangers)
	return sum
}

// Each number of runs is simulated once for all that is asked about it.
func TestHowManyRunsSupportAClass(t *testing.T) {
	t.Parallel()
	one := supported(t, 1)
	more := []support{one, supported(t, 2), supported(t, 3)}

	// This is why a single run makes a class.
	t.Run("few strangers are taken for a class of one run", func(t *testing.T) {
		t.Parallel()
		if one.taken > 0.05*one.strangers {
			t.Errorf("%v of %v strangers are taken for a class of one run", one.taken, one.strangers)
		}
		if one.own < 0.8*one.questions {
			t.Errorf("%v of %v second runs are recognised", one.own, one.questions)
		}
		if later := more[2]; later.taken > 0.01*later.strangers {
			t.Errorf("%v of %v strangers are taken for something else when each class has runs", later.taken, later.strangers)
		}
	})
	t.Run("ambiguity is rare and often spares a wrong class", func(t *testing.T) {
		t.Parallel()
		var all support
		for _, s := range more {
			all.ambiguous += s.ambiguous
			all.ambiguousWrong += s.ambiguousWrong
			all.questions += s.questions
		}
		if all.ambiguous == 0 || all.ambiguous > 0.03*all.questions {
			t.Errorf("%v of %v runs are ambiguous", all.ambiguous, all.questions)
		}
		if all.ambiguousWrong < 0.3*all.ambiguous {
			t.Errorf("of %v ambiguous runs only %v would have gone wrong", all.ambiguous, all.ambiguousWrong)
		}
	})
}
