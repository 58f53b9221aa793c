package knowledge

import (
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// Summary is what a person is shown of the knowledge.
type Summary struct {
	Schema       int            `json:"schema"`
	Observations int            `json:"observations"`
	Measure      tuning.Measure `json:"measure"`
	Kinds        []KindSummary  `json:"kinds"`
	Classes      []ClassSummary `json:"classes"`
}

// KindSummary is what is known of one kind of job.
type KindSummary struct {
	Kind      tuning.JobKind    `json:"kind"`
	Runs      int               `json:"runs"`
	Newest    time.Time         `json:"newest"`
	Class     string            `json:"class,omitempty"` // of its newest observation
	Effects   []tuning.Effect   `json:"effects,omitempty"`
	Regressed []tuning.Settings `json:"regressed,omitempty"`
	PeakRSS   tuning.Bytes      `json:"peak_rss,omitempty"`
}

// ClassSummary is what is known of one class.
type ClassSummary struct {
	ID      string           `json:"id"`
	Runs    int              `json:"runs"`
	Kinds   []tuning.JobKind `json:"kinds"`
	Effects []tuning.Effect  `json:"effects,omitempty"`
}

// Inspect summarises all that is known: the effects by the measure, at most top
// of them each, those of classes as seen from the machine. classify may be nil:
// then there are no classes.
func (s *Store) Inspect(m tuning.Measure, to Target, top int, classify func(Observation) string) (Summary, error) {
	obs, err := s.All()
	if err != nil {
		return Summary{}, err
	}
	return Summarise(obs, m, to, top, classify, s.aging()), nil
}

// Summarise derives what Inspect returns.
func Summarise(obs []Observation, m tuning.Measure, to Target, top int, classify func(Observation) string, a Aging) Summary {
	obs = unique(obs)
	sum := Summary{Schema: SchemaVersion, Observations: len(obs), Measure: m}
	byKind := map[tuning.JobKind][]Observation{}
	byClass := map[string][]Observation{}
	for _, o := range obs {
		byKind[o.Kind] = append(byKind[o.Kind], o)
		if classify == nil {
			continue
		}
		if id := classify(o); id != "" {
			byClass[id] = append(byClass[id], o)
		}
	}
	for _, kind := range sortedKinds(obs) {
		of := byKind[kind]
		newest := of[len(of)-1]
		k := KindSummary{Kind: kind, Runs: Jobs(of), Newest: newest.At, Regressed: Regressions(of, kind)}
		k.PeakRSS, _ = PeakRSS(of, kind)
		k.Effects = first(top, Effects(of, kind, nil, m, a))
		if classify != nil {
			k.Class = classify(newest)
		}
		sum.Kinds = append(sum.Kinds, k)
	}
	for _, id := range slices.Sorted(maps.Keys(byClass)) {
		of := byClass[id]
		everyone := func(Observation) bool { return true }
		sum.Classes = append(sum.Classes, ClassSummary{
			ID: id, Runs: Jobs(of), Kinds: sortedKinds(of),
			Effects: first(top, ClassEffects(of, everyone, nil, to, m, a)),
		})
	}
	return sum
}

func first(n int, effects []tuning.Effect) []tuning.Effect {
	return effects[:min(max(n, 0), len(effects))]
}

func sortedKinds(obs []Observation) []tuning.JobKind {
	seen := map[string]tuning.JobKind{}
	for _, o := range obs {
		seen[o.Kind.String()] = o.Kind
	}
	out := make([]tuning.JobKind, 0, len(seen))
	for _, key := range slices.Sorted(maps.Keys(seen)) {
		out = append(out, seen[key])
	}
	return out
}
