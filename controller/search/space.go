package search

import (
	"cmp"
	"slices"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// Dimension is one knob of a space and the values it may take.
type Dimension struct {
	Knob   string         `json:"knob"`
	Learns bool           `json:"learns"` // changes what the job learns, see tuning.Policy.Learns
	Values []tuning.Value `json:"values"` // numbers ascending, then words as written; the own value included
	Own    tuning.Value   `json:"own"`    // not set: as the job file has it
}

// Space lists the knobs that can be searched in the order in which they are:
// cores, threads, then the others as written. A range is cut into at most n
// values. Left out are knobs that follow another, those with nothing but their
// own value, and memory, GPUs and the power limit. own are the job's settings as
// its owner submitted it; a knob that it does not name has its default.
func Space(p tuning.Policy, own tuning.Settings, n int) []Dimension {
	var out []Dimension
	for _, k := range p.Knobs {
		if k.Follows != "" || !tuning.Settable(k.Name) {
			continue
		}
		d := Dimension{Knob: k.Name, Learns: p.Learns(k.Name), Own: own[k.Name]}
		if !d.Own.IsSet() {
			d.Own = k.Default
		}
		for _, v := range append(k.Candidates(n), d.Own) {
			fits := v == d.Own || p.Takes(k, v, own)
			if v.IsSet() && fits && !slices.Contains(d.Values, v) {
				d.Values = append(d.Values, v)
			}
		}
		slices.SortStableFunc(d.Values, func(a, b tuning.Value) int {
			switch {
			case a.IsNumber() && b.IsNumber():
				return cmp.Compare(a.Float(), b.Float())
			case a.IsNumber():
				return -1
			case b.IsNumber():
				return 1
			}
			return 0
		})
		if slices.ContainsFunc(d.Values, func(v tuning.Value) bool { return v != d.Own }) {
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b Dimension) int { return recur.CoresFirst(a.knob(), b.knob()) })
	return out
}

func (d Dimension) knob() recur.Knob {
	return recur.Knob{Name: d.Knob, System: tuning.IsSystem(d.Knob)}
}

// of is the value of the knob in settings.
func (d Dimension) of(s tuning.Settings) tuning.Value {
	if v := s[d.Knob]; v.IsSet() {
		return v
	}
	return d.Own
}
