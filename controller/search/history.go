package search

import (
	"math"
	"slices"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// history is a Returning as points of a grid.
type history struct {
	Returning
	study  Study // of the knobs that are searched now
	guard  guard
	points []tuning.Settings // the owner's first
}

// history is that of all knobs, with what the guard saw.
func (r Returning) history() *history {
	h := &history{Returning: r, study: Study{Policy: r.Policy, Own: r.Own, Space: r.Space}}
	h.watch()
	return h
}

// grid gathers the points that matter now: the owner's, those that were measured, and all
// that differ from one of these in one knob. What is further away comes into sight when
// something nearer was measured.
func (h *history) grid() {
	h.points = []tuning.Settings{h.study.point(h.Own)}
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if h.comparable(t.Settings) {
				h.add(h.study.point(t.Settings))
			}
		}
	}
	for _, at := range slices.Clone(h.points) {
		for _, d := range h.study.Space {
			for _, v := range d.Values {
				h.add(at.With(d.Knob, v))
			}
		}
	}
}

func (h *history) add(p tuning.Settings) {
	if !slices.ContainsFunc(h.points, p.Equal) {
		h.points = append(h.points, p)
	}
}

// index is the point of settings, below 0 where they have none.
func (h *history) index(s tuning.Settings) int {
	return slices.IndexFunc(h.points, h.study.point(s).Equal)
}

// comparable reports whether settings differ from the owner's in nothing but the knobs that
// are searched, those that follow them, and memory, which only bounds a job.
func (h *history) comparable(s tuning.Settings) bool {
	free := func(name string) bool {
		k, ok := h.Policy.Knob(name)
		return name == tuning.Memory || ok && k.Follows != "" ||
			slices.ContainsFunc(h.study.Space, func(d Dimension) bool { return d.Knob == name })
	}
	for _, name := range h.Own.Diff(s) {
		if free(name) {
			continue
		}
		k, _ := h.Policy.Knob(name)
		a, b := h.Own[name], s[name]
		if !a.IsSet() {
			a = k.Default
		}
		if !b.IsSet() {
			b = k.Default
		}
		if a != b {
			return false
		}
	}
	return true
}

// whole is the history in the terms of the tuner.
func (h *history) whole() recur.Whole {
	w := recur.Whole{
		Space:    recur.Space{Points: h.points},
		Goal:     recur.Goal{MaxSlowdown: h.Policy.MaxSlowdown},
		Barred:   make([]bool, len(h.points)),
		Unproven: make([]bool, len(h.points)),
	}
	for _, d := range h.study.Space {
		w.Space.Knobs = append(w.Space.Knobs, recur.Knob{Name: d.Knob, System: !d.Learns})
	}
	for i, p := range h.points {
		settings := h.study.settings(p)
		_, permitted := h.Policy.Permits(h.Own, settings)
		at := h.guard.of(h.learning(p))
		w.Barred[i] = !permitted || at.worse() || h.Unlikely != nil && h.Unlikely(settings)
		w.Unproven[i] = !at.kept
	}
	for _, s := range slices.Concat(h.Avoid, h.Underway) {
		if i := h.index(s); i > 0 && len(s) > 0 {
			w.Barred[i] = true
		}
	}
	source := h.source()
	w.Goal.Measure = h.measure(source)
	for _, p := range h.Past {
		if run, ok := h.run(p, w.Goal.Measure, source); ok {
			w.Runs = append(w.Runs, run)
		}
		failed := p.End == tuning.EndFailed || h.missed(p)
		if i := h.index(p.Began); failed && len(p.Began) > 0 && h.comparable(p.Began) && i >= 0 {
			w.Failed = append(w.Failed, i)
		}
	}
	return w
}

// run is a past run in the terms of the tuner. False: nothing of it can be compared.
func (h *history) run(p tuning.PastRun, m tuning.Measure, source string) (recur.Run, bool) {
	out := recur.Run{Place: p.Machine, Weight: tuning.Aged(p.Age)}
	for _, t := range p.Trials {
		if t.Failed || !(t.Seconds > 0) || !(t.Weight() > 0) || !h.comparable(t.Settings) {
			continue
		}
		joules := math.NaN()
		if t.Joules != nil && t.Source == source {
			joules = float64(*t.Joules)
		}
		out.Parts = append(out.Parts, recur.Part{
			Point: h.index(t.Settings), Epochs: t.Weight(), Cost: m.Spent(t.Seconds, joules, t.Settings),
		})
	}
	out.Epochs = h.length(p)
	return out, len(out.Parts) > 0 && out.Weight > 0
}

// measure is what is compared: energy is free in it where the joules of one run are not
// known.
func (h *history) measure(source string) tuning.Measure {
	m := h.Policy.Measure()
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if t.Joules == nil || t.Source != source || !m.Tariff.Charges(source) {
				return m.WithoutEnergy()
			}
		}
	}
	return m
}

// source is where the joules come from that are compared: where most runs have them from.
// Computed ones are right on average and wrong on this job, so that they count only where
// the site says so, and only where no others are.
func (h *history) source() string {
	runs := map[string]int{}
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if t.Joules != nil && (t.Source != tuning.Modelled || h.Modelled) {
				runs[t.Source]++
			}
		}
	}
	best := ""
	for s, n := range runs {
		measured, before := s != tuning.Modelled, best != tuning.Modelled
		if best == "" || measured && !before || measured == before && (n > runs[best] || n == runs[best] && s < best) {
			best = s
		}
	}
	return best
}

// unmeasured says why the owner's settings have nothing that others could be held against.
func (h *history) unmeasured() tuning.Reason {
	modelled := slices.ContainsFunc(h.Past, func(p tuning.PastRun) bool {
		return slices.ContainsFunc(p.Trials, func(t tuning.Trial) bool { return t.Source == tuning.Modelled })
	})
	switch {
	case len(h.Past) == 0:
		return tuning.ReasonFirstSeen
	case h.Policy.Measure().NeedsJoules() && modelled && !h.Modelled:
		return tuning.ReasonModelled
	}
	return tuning.ReasonOwnFirst
}

// effect is what runs showed of a setting.
func (h *history) effect(s recur.Standing) tuning.Effect {
	return tuning.Effect{
		Settings: h.effective(s.Point), LogRatio: s.Ratio, SD: s.SE * math.Sqrt(float64(s.Runs)), LogTime: s.Seconds, Runs: s.Runs, Age: h.age(s.Point),
	}
}

// effective are the settings of a point without memory, which has no effect.
func (h *history) effective(at int) tuning.Settings {
	return h.study.settings(h.points[at]).WithoutMemory()
}

// age is that of the newest run that was measured under a point, in days.
func (h *history) age(at int) float64 {
	age := math.Inf(1)
	for _, p := range h.Past {
		for _, t := range p.Trials {
			if h.comparable(t.Settings) && h.index(t.Settings) == at {
				age = min(age, p.Age)
			}
		}
	}
	return age
}
