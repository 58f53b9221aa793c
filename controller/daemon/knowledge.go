package daemon

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/classify"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
)

// shownEffects is how many effects of a kind or class are shown for an objective.
const shownEffects = 6

// knowledge shows what the jobs taught that the caller may see. Effects on a
// class are derived from these jobs alone too: what others' jobs did is theirs. The model
// is fitted from all jobs, but users see only the place of their own in it: the machines
// and core counts of others are not theirs to know.
func (r request) knowledge() (any, error) {
	obs, err := r.d.observations(r.who.May)
	if err != nil {
		return nil, err
	}
	known := r.d.known(r.Context(), obs, time.Now())
	if known.Model != nil && !r.who.Privileged() {
		known.Model.Strata = strataOf(known.Model.Strata, obs)
	}
	return known, nil
}

// observations are those of the owners that the caller may see, oldest first.
func (r *services) observations(may func(owner string) bool) ([]knowledge.Observation, error) {
	all, err := r.store.All()
	if err != nil {
		return nil, fmt.Errorf("read the observations: %w", err)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(o knowledge.Observation) bool { return !may(o.Kind.Owner) })
	slices.SortStableFunc(out, func(a, b knowledge.Observation) int { return a.At.Compare(b.At) })
	return out, nil
}

func (r *services) known(ctx context.Context, obs []knowledge.Observation, now time.Time) api.Knowledge {
	out := api.Knowledge{
		Schema: knowledge.SchemaVersion, Observations: len(obs), Kinds: []api.KnownKind{}, Classes: []api.KnownClass{},
	}
	target := r.target(ctx, "") // for no job in particular
	byKind, byClass := map[string][]knowledge.Observation{}, map[string][]knowledge.Observation{}
	for _, o := range obs {
		byKind[o.Kind.String()] = append(byKind[o.Kind.String()], o)
		if id := r.classOf(o); id != "" {
			byClass[id] = append(byClass[id], o)
		}
	}
	site := r.site.For("", "", "", "").Tariff
	if site.Billed { // differently in each partition
		site = tuning.DefaultTariff()
	}
	for _, name := range slices.Sorted(maps.Keys(byKind)) {
		of := byKind[name]
		newest := of[len(of)-1]
		known := api.KnownKind{
			Kind: name, Runs: knowledge.Jobs(of), Newest: newest.At, Class: r.classOf(newest),
			Regressed: knowledge.Regressions(of, newest.Kind),
			Effects: effectsOn(of, site, func(m tuning.Measure) []tuning.Effect {
				a := knowledge.Asker{Kind: newest.Kind}
				if newest.Search != "" {
					a.Search, a.Learns = newest.Search, func(knob string) bool { return !tuning.IsSystem(knob) }
				}
				return knowledge.Effects(of, a, m, now)
			}),
		}
		known.Peak, _ = knowledge.PeakRSS(of, knowledge.Asker{Kind: newest.Kind})
		out.Kinds = append(out.Kinds, known)
	}
	for _, id := range slices.Sorted(maps.Keys(byClass)) {
		of := byClass[id]
		kinds := tuning.Each(of, func(o knowledge.Observation) string { return o.Kind.String() })
		slices.Sort(kinds)
		out.Classes = append(out.Classes, api.KnownClass{
			ID: id, Runs: knowledge.Jobs(of), Kinds: slices.Compact(kinds),
			Effects: effectsOn(of, site, func(m tuning.Measure) []tuning.Effect {
				return knowledge.ClassEffects(of, nil, target, m, now)
			}),
		})
	}
	out.Model = modelOf(r.model.Load())
	return out
}

// effectsOn are the best effects for each objective that has any, with the sources of the
// joules that they could have been measured by.
func effectsOn(obs []knowledge.Observation, site tuning.Tariff, effects func(tuning.Measure) []tuning.Effect) []api.KnownEffects {
	var out []api.KnownEffects
	for _, objective := range []tuning.Objective{tuning.Time, tuning.Energy, tuning.EDP, tuning.Cost} {
		m := tuning.Measure{Objective: objective, Tariff: site}
		found, sources := effects(m), map[string]bool{}
		for _, x := range obs {
			for _, t := range x.Trials {
				if (tuning.Measure{Objective: objective}).NeedsJoules() && t.Joules != nil && t.Source != "" {
					sources[t.Source] = true
				}
			}
		}
		if len(found) > 0 {
			out = append(out, api.KnownEffects{
				Objective: objective, Effects: found[:min(len(found), shownEffects)], Sources: slices.Sorted(maps.Keys(sources)),
			})
		}
	}
	return out
}

// modelOf describes the classes; nil where none were fitted.
func modelOf(m *classify.Model) *api.KnownModel {
	if m == nil {
		return nil
	}
	out := &api.KnownModel{Name: m.ID, Version: m.Version, Fits: m.Generation, Confidence: m.Confidence, Strata: []api.KnownStratum{}}
	for _, s := range m.Strata {
		out.Strata = append(out.Strata, api.KnownStratum{
			Schema: s.Key.Schema, Machine: s.Key.Machine, Settings: s.Key.Settings, K: len(s.Groups), Runs: s.Runs,
			Silhouette: s.Silhouette,
		})
	}
	return out
}

func strataOf(strata []api.KnownStratum, obs []knowledge.Observation) []api.KnownStratum {
	return slices.DeleteFunc(strata, func(s api.KnownStratum) bool {
		key := classify.Key{Schema: s.Schema, Machine: s.Machine, Settings: s.Settings}
		return !slices.ContainsFunc(obs, func(o knowledge.Observation) bool {
			return slices.ContainsFunc(o.Profiles, func(p tuning.Profile) bool { return classify.KeyOf(p) == key })
		})
	})
}
