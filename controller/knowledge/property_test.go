package knowledge

import (
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitchpipe/controller/tuning"
)

func drawObservations(t *rapid.T) []Observation {
	n := rapid.IntRange(0, 12).Draw(t, "n")
	out := make([]Observation, 0, n)
	for i := range n {
		o := observation(fmt.Sprintf("job%d", rapid.IntRange(0, 5).Draw(t, "job")), rapid.IntRange(0, 400).Draw(t, "day"))
		o.ID = fmt.Sprint(i)
		o.Polluted = rapid.IntRange(0, 5).Draw(t, "polluted") == 0
		o.Peak = tuning.Bytes(rapid.IntRange(0, 9).Draw(t, "peak"))
		o.Trials = nil
		for c := range rapid.IntRange(0, 4).Draw(t, "trials") {
			tr := trial(onCores(float64(c+1)), rapid.Float64Range(.5, 50).Draw(t, "s"), rapid.Float64Range(0, 50).Draw(t, "j"))
			tr.Reference = c == 0
			tr.Epochs = rapid.IntRange(1, 9).Draw(t, "epochs")
			o.Trials = append(o.Trials, tr)
		}
		if rapid.Bool().Draw(t, "outcome") {
			o.Outcome = &tuning.Outcome{
				Verdict: rapid.SampledFrom([]tuning.Verdict{tuning.Improved, tuning.Regressed, tuning.Neutral}).Draw(t, "verdict"),
				Tuned:   onCores(float64(rapid.IntRange(2, 4).Draw(t, "tuned"))),
			}
		}
		out = append(out, o)
	}
	return out
}

func TestNeitherOrderNorRepetitionOfObservationsMatters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		obs := drawObservations(t)
		m := tuning.Measure{Objective: rapid.SampledFrom(tuning.Objectives()).Draw(t, "objective"), Weight: .5}
		other := rapid.Permutation(obs).Draw(t, "order")
		for range rapid.IntRange(0, 3).Draw(t, "repeated") {
			if len(obs) > 0 {
				other = append(other, obs[rapid.IntRange(0, len(obs)-1).Draw(t, "which")])
			}
		}
		want, got := derived(obs, m), derived(other, m)
		if diff := cmp.Diff(want, got, near(), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("in another order (-want +got):\n%s", diff)
		}
	})
}

// derived is all that observations say.
func derived(obs []Observation, m tuning.Measure) []any {
	k := kind("train")
	peak, peaks := PeakRSS(obs, Asker{Kind: k})
	seconds, runs := KindSeconds(obs, Asker{Kind: k, Own: onCores(1)})
	last, _ := LastReference(obs, k)
	return []any{
		Jobs(obs), peak, peaks, seconds, runs, last, Regressions(obs, k), MemoryHeld(obs, k), PastRuns(obs, k, at(500)),
		Effects(obs, Asker{Kind: k}, m, at(500)), Effects(obs, Asker{Kind: k, Own: onCores(2)}, m, at(500)), Carried(obs, Asker{Kind: k, Own: onCores(2)}, m, at(500)),
		ClassEffects(obs, nil, Target{"m/8", 8}, m, at(500)), ClassEffects(obs, onCores(2), Target{"n/16", 16}, m, at(500)),
	}
}

func TestEffectsGetOlderAndStayWithinWhatWasMeasured(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		obs := drawObservations(t)
		now := rapid.IntRange(0, 500).Draw(t, "now")
		later := now + rapid.IntRange(0, 500).Draw(t, "later")
		lo, hi := math.Inf(1), math.Inf(-1)
		for _, o := range obs {
			for _, x := range o.Trials {
				for _, y := range o.Trials {
					lo = min(lo, math.Log(x.Seconds/y.Seconds))
					hi = max(hi, math.Log(x.Seconds/y.Seconds))
				}
			}
		}
		before := Effects(obs, Asker{Kind: kind("train"), Own: onCores(1)}, byTimeAlone(), at(now))
		after := Effects(obs, Asker{Kind: kind("train"), Own: onCores(1)}, byTimeAlone(), at(later))
		if len(before) != len(after) {
			t.Fatalf("%d effects, later %d", len(before), len(after))
		}
		ages := map[string]float64{}
		for _, e := range before {
			ages[e.Settings.Key()] = e.Age
			if e.Runs < 1 || e.SD < 0 || math.IsNaN(e.SD) || e.Age < 0 {
				t.Fatalf("%+v", e)
			}
			if obsOfOneJob(obs) && (e.LogRatio < lo-1e-9 || e.LogRatio > hi+1e-9) {
				t.Fatalf("%+v outside of [%g, %g]", e, lo, hi)
			}
		}
		for _, e := range after {
			if e.Age < ages[e.Settings.Key()] {
				t.Fatalf("%+v was %g days old before", e, ages[e.Settings.Key()])
			}
		}
	})
}

// obsOfOneJob reports whether no job has two observations, whose trials would pair
// across them.
func obsOfOneJob(obs []Observation) bool {
	seen := map[string]bool{}
	for _, o := range obs {
		if seen[o.Job] {
			return false
		}
		seen[o.Job] = true
	}
	return true
}
