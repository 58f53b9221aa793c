package classify_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/tuning"
)

// drawSamples draws runs of up to four kinds with gaps among the features.
func drawSamples(t *rapid.T) []classify.Sample {
	var out []classify.Sample
	for i := range rapid.IntRange(1, 14).Draw(t, "runs") {
		k := rapid.IntRange(0, 3).Draw(t, "kind")
		for range rapid.IntRange(1, 2).Draw(t, "profiles") {
			f := map[string]float64{}
			for j, name := range []string{"minor_faults", "context_switches", "system_share", "read_chars", "rss", "cpu_utilisation"} {
				if rapid.IntRange(0, 9).Draw(t, "gap") > 0 {
					f[name] = float64(k*(j%3)*4) + rapid.Float64Range(-1, 1).Draw(t, name)
				}
			}
			p := prof(f)
			p.Settings = cores(float64(rapid.IntRange(1, 2).Draw(t, "cores")))
			out = append(out, sample(fmt.Sprintf("r%02d", i), fmt.Sprint(k), p))
		}
	}
	return out
}

func TestWhateverIsLearnedHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(t)
		m := fit(t, samples...)
		text, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := classify.Decode(text)
		if err != nil {
			t.Fatalf("the model does not read itself: %v\n%s", err, text)
		}
		ask := func(p tuning.Profile) tuning.Class {
			t.Helper()
			a, b := m.Classify(p), back.Classify(p)
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("the model that was stored answers differently:\n%s", diff)
			}
			if _, err := json.Marshal(a); err != nil {
				t.Fatalf("%+v: %v", a, err)
			}
			return a
		}
		for _, s := range m.Strata {
			if len(s.Groups) > s.Runs {
				t.Fatalf("%d classes of %d runs", len(s.Groups), s.Runs)
			}
			for _, g := range s.Groups {
				p := at(0)
				p.Settings = tuning.Settings{}
				for _, n := range []float64{1, 2} {
					if cores(n).Key() == s.Key.Settings {
						p.Settings = cores(n)
					}
				}
				p.Features = g.Center
				// A centre that lacks much of the weight can be compared with nothing, and
				// that of a broad class may lie in a narrow one.
				if got := ask(p); got.ID != g.ID && got.Reason != tuning.ReasonSchemaMismatch && got.Reason != tuning.ReasonAmbiguous {
					t.Fatalf("the centre of %s is %+v in\n%s", g.ID, got, text)
				}
				p.Features = map[string]float64{}
				for f := range g.Center {
					p.Features[f] = g.Center[f] + 1000
				}
				if got := ask(p); got.Known() {
					t.Fatalf("far out is %+v", got)
				}
			}
		}
		odd := rapid.MapOf(rapid.SampledFrom([]string{"minor_faults", "context_switches", "rss", "read_chars", "nothing"}), rapid.Float64()).Draw(t, "odd")
		ask(prof(odd))
	})
}

func TestThePartitionDependsOnNeitherOrderNorCopies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		samples := drawSamples(t)
		want := partition(fit(t, samples...))

		shuffled := rapid.Permutation(samples).Draw(t, "order")
		if diff := cmp.Diff(want, partition(fit(t, shuffled...))); diff != "" {
			t.Fatalf("another order:\n%s", diff)
		}
		twice := append(slices.Clone(samples), samples...)
		if diff := cmp.Diff(want, partition(fit(t, twice...))); diff != "" {
			t.Fatalf("each profile twice:\n%s", diff)
		}
	})
}
