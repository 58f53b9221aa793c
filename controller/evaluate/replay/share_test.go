package replay_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/evaluatetest"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/plan"
	"pitchpipe/controller/tuning"
)

const (
	batch = "batch_size"
	limit = tuning.PowerLimit + "_watts"
)

// TestTrialsServeThoseOfOtherBatchSizes chooses the power limit of a batch size from what six trials
// of other batch sizes showed. The log ratio of its joules to those of the best limit is the regret;
// a trial that nothing serves keeps its owner's limit.
func TestTrialsServeThoseOfOtherBatchSizes(t *testing.T) {
	t.Parallel()
	table := evaluatetest.Recorded(t, evaluate.Trials, "zeus/trials.csv")[0]
	for _, tc := range []struct {
		name           string
		slowdown       float64 // that the owner allows; 0 = any
		regret, slower float64 // at most: the share of the regret without sharing, and of the trials that are too slow
	}{
		{"and save most of what there is", 0, 0.3, 0},
		{"and keep to the slowdown that their owner allows", tuning.DefaultMaxSlowdown, 0.8, 0.01},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			policy := tuning.DefaultPolicy()
			policy.Mode, policy.Objective, policy.MaxSlowdown = tuning.Apply, tuning.Energy, tc.slowdown
			policy.Knobs = []tuning.Knob{{Name: limit, Env: "WATTS", Quality: tuning.QualitySame, Min: tuning.Number(50), Max: tuning.Number(500)}}
			var none, shared, slower, n float64
			var errors []float64
			for _, g := range table.Jobs() {
				s := searchOf(g)
				for b, trials := range s {
					for seed := range uint64(5) {
						effects := s.effects(policy, b, seed)
						chosen := choose(policy, trials, effects)
						n++
						none += regret(policy, trials, trials[0])
						shared += regret(policy, trials, chosen)
						if tc.slowdown > 0 && chosen.Seconds > trials[0].Seconds*tc.slowdown {
							slower++
						}
						errors = append(errors, surprises(policy, trials, effects)...)
					}
				}
			}
			slices.Sort(errors)
			z := errors[len(errors)*95/100]
			t.Logf("%.0f trials: regret %.3f, without sharing %.3f; %.1f %% are slower than allowed; 95 %% of %d effects are within %.1f standard errors",
				n, shared/n, none/n, 100*slower/n, len(errors), z)
			if shared > tc.regret*none || slower > tc.slower*n || z > 2.5 {
				t.Errorf("want at most %.2f of the regret without sharing, %.1f %% slower, and 2.5 standard errors", tc.regret, 100*tc.slower)
			}
		})
	}
}

// trialsOf are the trials by batch size, the first of each under the highest power limit.
type trialsOf map[tuning.Value][]tuning.Trial

func searchOf(g evaluate.Group) trialsOf {
	out := trialsOf{}
	for _, r := range g.Rows {
		b := r.Knobs[batch]
		seconds, _ := r.Float("epoch_seconds")
		watts, measured := r.Float("watts")
		same := func(t tuning.Trial) bool { return t.Settings.Equal(r.Knobs) }
		if measured && !slices.ContainsFunc(out[b], same) {
			out[b] = append(out[b], tuning.Trial{
				Settings: r.Knobs, Epochs: 2, Seconds: seconds, SDLog: 0.02, Joules: new(tuning.Joules(seconds * watts)), Source: "gpu",
			})
		}
	}
	for _, trials := range out {
		slices.SortFunc(trials, func(a, b tuning.Trial) int { return b.Settings[limit].Int() - a.Settings[limit].Int() })
		trials[0].Reference = true
	}
	return out
}

func now() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }

// effects are those on a batch size that six others show.
func (s trialsOf) effects(p tuning.Policy, b tuning.Value, seed uint64) []tuning.Effect {
	var others []tuning.Value
	for o := range s {
		if o != b {
			others = append(others, o)
		}
	}
	slices.SortFunc(others, func(a, b tuning.Value) int { return a.Int() - b.Int() })
	rng := rand.New(rand.NewPCG(seed, 1))
	rng.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	var obs []knowledge.Observation
	for _, o := range others[:min(6, len(others))] {
		obs = append(obs, knowledge.Observation{ID: o.String(), Job: o.String(), At: now(), Trials: s[o]})
	}
	return knowledge.Effects(obs, knowledge.Asker{Own: s[b][0].Settings, Learns: p.Learns}, p.Measure(), now())
}

func choose(p tuning.Policy, trials []tuning.Trial, effects []tuning.Effect) tuning.Trial {
	own := trials[0].Settings
	d := plan.Choose(tuning.State{
		Now: now(), Policy: p, Site: tuning.Site{MaxMode: tuning.Apply, Margin: 1},
		Standing: tuning.Standing{Own: own, Current: own, Pending: true}, Knowledge: tuning.Knowledge{KindEffects: effects},
	})
	if t, ok := tuning.First(trials, func(t tuning.Trial) bool { return t.Settings[limit] == d.Settings[limit] }); ok {
		return t
	}
	return trials[0]
}

func regret(p tuning.Policy, trials []tuning.Trial, chosen tuning.Trial) float64 {
	least := 0.0
	for _, t := range trials {
		if v, _ := t.LogRatio(trials[0], p.Measure()); p.MaxSlowdown == 0 || t.Seconds <= trials[0].Seconds*p.MaxSlowdown {
			least = min(least, v)
		}
	}
	v, _ := chosen.LogRatio(trials[0], p.Measure())
	return v - least
}

// surprises are how many of its standard errors each effect was off.
func surprises(p tuning.Policy, trials []tuning.Trial, effects []tuning.Effect) (out []float64) {
	const between = 0.04 // as the planner has it
	for _, e := range effects {
		if t, ok := tuning.First(trials, func(t tuning.Trial) bool { return t.Settings[limit] == e.Settings[limit] }); ok {
			v, _ := t.LogRatio(trials[0], p.Measure())
			out = append(out, math.Abs(v-e.LogRatio)/math.Hypot(math.Hypot(e.SD, between)/math.Sqrt(e.Fresh()), e.Apart))
		}
	}
	return out
}
