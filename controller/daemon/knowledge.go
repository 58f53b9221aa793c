package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
// class are derived from these jobs alone too: what others' jobs did is theirs. Of
// the model, which is fitted from all jobs, users see where their own stand: on
// which machines and with how many cores others work is not theirs to know.
func (h handler) knowledge(req *http.Request) (any, error) {
	who, err := h.caller(req)
	if err != nil {
		return nil, err
	}
	obs, err := h.d.rooms.observations(who.May)
	if err != nil {
		return nil, err
	}
	known := h.d.rooms.known(req.Context(), obs, time.Now())
	if known.Model != nil && !who.Privileged() {
		known.Model.Strata = strataOf(known.Model.Strata, obs)
	}
	return known, nil
}

// observe sends the raw observations as JSON lines, oldest first.
func (h handler) observe(w http.ResponseWriter, req *http.Request) {
	who, err := h.caller(req)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	obs, err := h.d.rooms.observations(who.May)
	if err != nil {
		h.answer(w, nil, err)
		return
	}
	w.Header().Set("Content-Type", "application/jsonl")
	lines := json.NewEncoder(w)
	for _, o := range obs {
		if err := lines.Encode(o); err != nil {
			h.d.log.Debug("observations not sent whole", "error", err)
			return
		}
	}
}

// observations are those of the owners that the caller may see, oldest first.
func (r *rooms) observations(may func(owner string) bool) ([]knowledge.Observation, error) {
	all, err := r.store.All()
	if err != nil {
		return nil, fmt.Errorf("read the observations: %w", err)
	}
	out := slices.DeleteFunc(slices.Clone(all), func(o knowledge.Observation) bool { return !may(o.Kind.Owner) })
	slices.SortStableFunc(out, func(a, b knowledge.Observation) int { return a.At.Compare(b.At) })
	return out, nil
}

// known is what the observations taught, for each objective of which they have
// data.
func (r *rooms) known(ctx context.Context, obs []knowledge.Observation, now time.Time) api.Knowledge {
	out := api.Knowledge{
		Schema: knowledge.SchemaVersion, Observations: len(obs), Kinds: []api.KnownKind{}, Classes: []api.KnownClass{},
	}
	target := r.target(ctx, "") // for no job in particular
	byClass := map[string][]knowledge.Observation{}
	for _, o := range obs {
		id := r.classOf(o)
		byClass[id] = append(byClass[id], o)
	}
	site := r.site.For("", "", "", "").Tariff
	if site.Billed { // differently in each partition
		site = tuning.DefaultTariff()
	}
	for i, objective := range []tuning.Objective{tuning.Time, tuning.Energy, tuning.EDP, tuning.Cost} {
		sum := knowledge.Summarise(obs, tuning.Measure{Objective: objective, Tariff: site}, target, shownEffects, r.classOf, knowledge.Aging{Now: now})
		for j, k := range sum.Kinds {
			if i == 0 {
				out.Kinds = append(out.Kinds, api.KnownKind{
					Kind: k.Kind.String(), Runs: k.Runs, Newest: k.Newest, Class: k.Class, Peak: k.PeakRSS, Regressed: k.Regressed,
				})
			}
			of := slices.DeleteFunc(slices.Clone(obs), func(o knowledge.Observation) bool { return o.Kind != k.Kind })
			out.Kinds[j].Effects = effectsOn(out.Kinds[j].Effects, objective, k.Effects, of)
		}
		for j, c := range sum.Classes {
			if i == 0 {
				known := api.KnownClass{ID: c.ID, Runs: c.Runs}
				for _, k := range c.Kinds {
					known.Kinds = append(known.Kinds, k.String())
				}
				out.Classes = append(out.Classes, known)
			}
			out.Classes[j].Effects = effectsOn(out.Classes[j].Effects, objective, c.Effects, byClass[c.ID])
		}
	}
	r.mu.Lock()
	model := r.model
	r.mu.Unlock()
	out.Model = modelOf(model)
	return out
}

// effectsOn adds the effects on one objective, where there are any, with the
// sources of the joules that they could have been measured by.
func effectsOn(list []api.KnownEffects, o tuning.Objective, effects []tuning.Effect, obs []knowledge.Observation) []api.KnownEffects {
	if len(effects) == 0 {
		return list
	}
	out := api.KnownEffects{Objective: o, Effects: effects}
	if (tuning.Measure{Objective: o}).NeedsJoules() {
		for _, x := range obs {
			for _, t := range x.Trials {
				if t.Joules != nil && t.Source != "" && !slices.Contains(out.Sources, t.Source) {
					out.Sources = append(out.Sources, t.Source)
				}
			}
		}
		slices.Sort(out.Sources)
	}
	return append(list, out)
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

// strataOf are those that a profile of these observations belongs to.
func strataOf(strata []api.KnownStratum, obs []knowledge.Observation) []api.KnownStratum {
	return slices.DeleteFunc(strata, func(s api.KnownStratum) bool {
		key := classify.Key{Schema: s.Schema, Machine: s.Machine, Settings: s.Settings}
		return !slices.ContainsFunc(obs, func(o knowledge.Observation) bool {
			return slices.ContainsFunc(o.Profiles, func(p tuning.Profile) bool { return classify.KeyOf(p) == key })
		})
	})
}
