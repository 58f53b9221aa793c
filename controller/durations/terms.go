package durations

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/report"
)

// Term is a shape function for a person to read.
type Term struct {
	Name   string
	Levels []Level // in their order where they are numbers, else those with the most jobs first
	moved  float64
}

// Level is a level of a term.
type Level struct {
	Name   string
	Jobs   int     // that stand behind it
	Factor float64 // by which it multiplies a typical duration
}

// Terms are the terms of the model as of the last fit and what was learnt since, those that move jobs most first.
func (m *Model) Terms() []Term {
	var out []Term
	for _, t := range m.shape.terms {
		made := Term{Name: t.name}
		for cell, e := range t.effect {
			if n := t.rows[cell]; n > 0 {
				made.Levels = append(made.Levels, Level{m.shape.label(t, cell), int(n), math.Exp(e)})
				made.moved += n * e * e
			}
		}
		if t.say == nil {
			slices.SortStableFunc(made.Levels, func(x, y Level) int { return cmp.Compare(y.Jobs, x.Jobs) })
		}
		if len(made.Levels) > 1 {
			out = append(out, made)
		}
	}
	slices.SortStableFunc(out, func(x, y Term) int { return cmp.Compare(y.moved, x.moved) })
	return out
}

// label names a cell.
func (a *additive) label(t *term, cell int) string {
	switch {
	case t.pair != nil:
		return a.label(a.terms[t.pair[0]], int(t.keys[cell].first)) + ", " + a.label(a.terms[t.pair[1]], int(t.keys[cell].second))
	case t.say == nil:
		return cmp.Or(report.Legible(t.keys[cell].word), "unknown")
	case cell == 0:
		return "unknown"
	}
	low, high := "", ""
	if cell > 1 {
		low = t.say(t.edges[cell-2])
	}
	if cell <= len(t.edges) {
		most := t.edges[cell-1]
		if t.whole {
			most--
		}
		high = t.say(most)
	}
	switch {
	case low == high:
		return cmp.Or(low, "known")
	case high == "":
		return "from " + low
	case low == "":
		return "up to " + high
	}
	return low + " to " + high
}
