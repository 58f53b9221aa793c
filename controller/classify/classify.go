package classify

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Classify tells which class the profile belongs to: of those within whose
// radius it lies, the one where it lies deepest. Features that are missing on
// either side are left out of the comparison, at least half of the weight must
// remain.
//
// The reasons: ReasonNearest with a class; without one ReasonTooFar (outside
// every radius), ReasonNoModel (nothing learned on such machines),
// ReasonSchemaMismatch (learned with other counters, or too few in common) and
// ReasonOtherSettings (learned only under other cores or threads). A nil model
// knows nothing.
func (m *Model) Classify(p tuning.Profile) tuning.Class {
	s, ok := m.stratum(KeyOf(p))
	if m == nil {
		return tuning.Class{Reason: tuning.ReasonNoModel}
	}
	if !ok {
		return tuning.Class{Reason: m.without(KeyOf(p)), Model: m.ID}
	}
	out := tuning.Class{Reason: tuning.ReasonNoModel, Model: m.ID}
	if len(s.Groups) > 0 {
		out.Reason = tuning.ReasonSchemaMismatch
	}
	deepest, widest := math.Inf(1), 0.0
	for _, g := range s.Groups {
		d, share := s.distance(p.Features, g.Center)
		if share < enoughShare {
			continue
		}
		reach := radius(m, g, freedom(s.common(p.Features, g.Center)))
		depth := d / reach
		// Of classes equally deep, the one that shares more features is better founded.
		if depth > deepest || depth == deepest && share <= widest {
			continue
		}
		deepest, widest = depth, share
		out.NearestID, out.Distance, out.Radius = g.ID, d, reach
	}
	switch {
	case out.NearestID == "":
	case deepest <= 1:
		out.ID, out.Reason = out.NearestID, tuning.ReasonNearest
	default:
		out.Reason = tuning.ReasonTooFar
	}
	return out
}

// without says why no stratum has this key.
func (m *Model) without(key Key) tuning.Reason {
	reason := tuning.ReasonNoModel
	for _, s := range m.Strata {
		if s.Key.Machine != key.Machine || len(s.Groups) == 0 {
			continue
		}
		if s.Key.Schema == key.Schema {
			return tuning.ReasonOtherSettings
		}
		reason = tuning.ReasonSchemaMismatch
	}
	return reason
}

// common are the axes that both have.
func (s Stratum) common(a, b map[string]float64) []Axis {
	var out []Axis
	for _, axis := range s.Axes {
		x, okX := a[axis.Feature]
		y, okY := b[axis.Feature]
		if okX && okY && usable(x) && usable(y) {
			out = append(out, axis)
		}
	}
	return out
}
