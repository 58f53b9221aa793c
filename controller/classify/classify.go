package classify

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// likelier is how many times as probable the profile must be under its class as
// under any other within whose radius it lies (Jeffreys, "Theory of Probability", 1961:
// below √10 evidence is barely worth mentioning). In the simulations of this package's
// tests up to two of 100 second runs are ambiguous by it, half of them rightly.
const likelier = 3

// neighbours is how many of the nearest classes are named with an answer.
const neighbours = 3

// Classify tells which class the profile belongs to: of those within whose
// radius it lies, the one where it lies deepest. Features that are missing on
// either side are left out, at least half of the weight must remain. A nil model knows
// nothing.
//
// The reasons: ReasonNearest with a class; without one ReasonTooFar (outside
// every radius), ReasonAmbiguous (within two radii, and not clearly nearer to one
// of them; RunnerUpID is the other), ReasonNoModel (nothing learned on such
// machines), ReasonSchemaMismatch (learned with other counters, or too few in
// common), ReasonOtherSettings (learned only under other cores or threads) and
// ReasonThinProfile (fewer samples than the noise of the features is known for).
// Other flags are cautions: what they do to a feature is noise, which the radius bounds.
func (m *Model) Classify(p tuning.Profile) tuning.Class {
	s, ok := m.stratum(KeyOf(p))
	switch {
	case m == nil:
		return tuning.Class{Reason: tuning.ReasonNoModel}
	case slices.Contains(p.Flags, tuning.FlagFewSamples):
		return tuning.Class{Reason: tuning.ReasonThinProfile, Model: m.ID, Cautions: slices.Clone(p.Flags)}
	case !ok:
		return tuning.Class{Reason: m.without(KeyOf(p)), Model: m.ID}
	}
	out := tuning.Class{Reason: tuning.ReasonNoModel, Model: m.ID}
	if len(s.Groups) > 0 {
		out.Reason = tuning.ReasonSchemaMismatch
	}
	near := s.candidates(p.Features)
	if len(near) == 0 {
		return out
	}
	first := near[0]
	out.NearestID, out.Distance, out.Radius, out.Support = first.group.ID, first.distance, first.reach, len(first.group.Runs)
	// Missing perf events need no caution: the schema says so, and is compared.
	out.Cautions = slices.DeleteFunc(slices.Clone(p.Flags), func(f tuning.Flag) bool { return f == tuning.FlagNoPerf })
	for _, c := range near[:min(len(near), neighbours)] {
		out.Neighbours = append(out.Neighbours, tuning.Neighbour{ID: c.group.ID, Distance: c.distance, Radius: c.reach})
	}
	switch {
	case first.depth() > 1:
		out.Reason = tuning.ReasonTooFar
	case alike(first, near[1:]) != "":
		out.Reason, out.RunnerUpID = tuning.ReasonAmbiguous, alike(first, near[1:])
	default:
		out.ID, out.Reason = first.group.ID, tuning.ReasonNearest
	}
	return out
}

// alike is the most probable of the other classes where the first cannot be told
// from it, else empty.
func alike(first candidate, others []candidate) string {
	id, least := "", first.surprise()+math.Log(likelier)
	for _, c := range others {
		if v := c.surprise(); c.depth() <= 1 && v < least {
			id, least = c.group.ID, v
		}
	}
	return id
}

// candidate is a class that a profile can be compared with.
type candidate struct {
	comparison
	group Group
	reach float64 // radius
}

// depth is the distance over the radius: below 1 inside the class.
func (c candidate) depth() float64 { return c.distance / c.reach }

// surprise is the negative logarithm, up to a constant, of how probable a run of the
// class at this distance is: normal noise of as many features, around a centre that is
// itself the mean of few runs.
func (c candidate) surprise() float64 {
	variance := c.group.Spread * (1 + 1/float64(len(c.group.Runs)))
	return c.freedom / 2 * (c.distance*c.distance/variance + math.Log(variance))
}

// candidates are the classes of a stratum that share enough features with a
// profile, the one where it lies deepest first. Of classes equally deep, the one
// that shares more features is better founded.
func (s Stratum) candidates(features map[string]float64) []candidate {
	var out []candidate
	row := s.row(features)
	for i, g := range s.Groups {
		c := s.compare(row, s.rows[i])
		if c.share < enoughShare {
			continue
		}
		reach := s.reach[i]
		if c.freedom != s.free[i] {
			reach = radius(g, c.freedom)
		}
		out = append(out, candidate{c, g, reach})
	}
	slices.SortStableFunc(out, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.depth(), b.depth()), cmp.Compare(b.share, a.share))
	})
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
