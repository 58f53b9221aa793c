package durations

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"pitchpipe/controller/report"
)

// The settings of the additive model, chosen on the first week of a log and on made logs, where they matter little.
const (
	ridge     = 10.0 // rows' worth of doubt that draws a level towards the average
	mostBins  = 32   // of an ordered feature
	mostPairs = 4
	passes    = 12
	sample    = 10_000 // the latest rows, which choose the pairs
	worth     = 0.002  // share of the squared error that a pair has to take away
)

// term is a shape function: an effect per cell, and the number of rows that support it. The cells are the words
// of a category, the bins of an ordered feature (0: it is unknown), or the pairs of cells of two other terms.
type term struct {
	name         string
	say          func(float64) string // prints a value of an ordered feature; nil: it is none
	whole        bool                 // its values are whole numbers
	edges        []float64            // between the bins
	pair         []int                // two terms
	cells        map[key]int32        // of a category or a pair
	keys         []key                // of the cells
	effect, rows []float64
}

// key is a word or a pair of cells.
type key struct {
	word          string
	first, second int32
}

// row is what a model knows of a job or of a moment: words, then numbers; NaN is unknown.
type row struct {
	words   []string
	numbers []float64
}

// additive is a sum of terms: one for each word and number of a row, then the pairs.
type additive struct {
	base  float64
	terms []*term
}

// cut chooses edges so that bins hold about as many values each; equal values share a bin.
func (t *term) cut(values []float64) {
	known := slices.DeleteFunc(values, math.IsNaN)
	slices.Sort(known)
	for i := 1; i < mostBins && len(known) > 0; i++ {
		if edge := known[i*len(known)/mostBins]; edge > known[0] && (len(t.edges) == 0 || edge > t.edges[len(t.edges)-1]) {
			t.edges = append(t.edges, edge)
		}
	}
}

// at lists the cells of a row, by term. With grow, cells that are new are made; without, they are past the end.
func (a *additive) at(r row, grow bool) []int32 {
	out := make([]int32, len(a.terms))
	for k, t := range a.terms {
		var of key
		switch {
		case t.say != nil:
			if v := r.numbers[k-len(r.words)]; !math.IsNaN(v) {
				out[k] = 1 + int32(sort.Search(len(t.edges), func(i int) bool { return t.edges[i] > v })) //nolint:gosec // at most mostBins
			}
		case t.pair != nil:
			of.first, of.second = out[t.pair[0]], out[t.pair[1]]
		default:
			of.word = r.words[k]
		}
		if t.say == nil {
			cell, ok := t.cells[of]
			if !ok {
				cell = int32(len(t.keys)) //nolint:gosec // no more than rows
			}
			if out[k] = cell; !ok && grow {
				t.cells[of], t.keys = cell, append(t.keys, of)
			}
		}
		for grow && len(t.effect) <= int(out[k]) {
			t.effect, t.rows = append(t.effect, 0), append(t.rows, 0)
		}
	}
	return out
}

// predict is the value of a row. A cell that no row had counts as average.
func (a *additive) predict(r row) float64 {
	sum := a.base
	for k, cell := range a.at(r, false) {
		if effect := a.terms[k].effect; int(cell) < len(effect) {
			sum += effect[cell]
		}
	}
	return sum
}

// nudge moves the cells of a row towards its value, less the more rows support them.
func (a *additive) nudge(r row, value float64) {
	wrong, total, at := value-a.predict(r), 1.0, a.at(r, true)
	for k, t := range a.terms {
		t.rows[at[k]]++
		total += 1 / (t.rows[at[k]] + ridge)
	}
	for k, t := range a.terms {
		t.effect[at[k]] += wrong / (t.rows[at[k]] + ridge) / total
	}
}

// fit makes the model of rows from terms without cells, then adds the pairs that gain most.
func fit(terms []*term, rows []row, y []float64) *additive {
	a, left := &additive{terms: terms}, slices.Clone(y)
	for k, t := range terms {
		var values []float64
		for _, r := range rows {
			if t.say != nil {
				values = append(values, r.numbers[k-len(r.words)])
			}
		}
		t.cut(values)
		t.cells = map[key]int32{}
	}
	a.backfit(rows, left)
	from := max(0, len(rows)-sample)
	if pairs := a.pairs(rows[from:], left[from:]); len(pairs) > 0 {
		a.terms = append(a.terms, pairs...)
		a.backfit(rows, left)
	}
	return a
}

// backfit fits the terms in turn to what the others leave over, until little changes.
func (a *additive) backfit(rows []row, left []float64) {
	at := make([][]int32, len(rows))
	for i, r := range rows {
		at[i] = a.at(r, true)
	}
	for k, t := range a.terms {
		clear(t.rows)
		for i := range rows {
			t.rows[at[i][k]]++
		}
	}
	for range passes {
		mean, moved := 0.0, 0.0
		for _, r := range left {
			mean += r / float64(len(left))
		}
		a.base += mean
		for i := range left {
			left[i] -= mean
		}
		for k, t := range a.terms {
			effect, drift := make([]float64, len(t.effect)), 0.0
			for i, r := range left {
				effect[at[i][k]] += r
			}
			for c, n := range t.rows {
				effect[c] = (effect[c] + n*t.effect[c]) / (n + ridge)
				drift += n * effect[c] / float64(len(rows))
			}
			for c := range effect { // the mean over the rows stays 0
				if t.rows[c] > 0 {
					effect[c] -= drift
				}
				moved = max(moved, math.Abs(effect[c]-t.effect[c]))
			}
			for i := range left {
				left[i] += t.effect[at[i][k]] - effect[at[i][k]]
			}
			t.effect = effect
		}
		if moved < 1e-3 {
			return
		}
	}
}

// pairs are the terms of two others that take most off what is left. Each is learnt on the earlier half of the
// rows and judged by the later half.
func (a *additive) pairs(rows []row, left []float64) []*term {
	try, half, all := &additive{terms: slices.Clone(a.terms)}, len(rows)/2, 0.0
	for c, second := range a.terms {
		for d, first := range a.terms[:c] {
			try.terms = append(try.terms, &term{name: first.name + " and " + second.name, pair: []int{d, c}, cells: map[key]int32{}})
		}
	}
	gain := map[*term]float64{}
	for i, r := range rows {
		at := try.at(r, i < half)
		for k, t := range try.terms[len(a.terms):] {
			cell := int(at[len(a.terms)+k])
			if i < half {
				t.effect[cell] += left[i]
				t.rows[cell]++
			} else if cell < len(t.effect) {
				e := t.effect[cell] / (t.rows[cell] + ridge)
				gain[t] += e * (2*left[i] - e)
			}
		}
		if i >= half {
			all += left[i] * left[i]
		}
	}
	out := slices.DeleteFunc(try.terms[len(a.terms):], func(t *term) bool { return gain[t] <= worth*all })
	slices.SortStableFunc(out, func(x, y *term) int { return cmp.Compare(gain[y], gain[x]) })
	out = out[:min(mostPairs, len(out))]
	for _, t := range out {
		clear(t.effect)
	}
	return out
}

// Term is a shape function for a person to read.
type Term struct {
	Name   string
	Levels []Level // in their order where they are numbers, else those with the most jobs first
	moved  float64
}

// Level is a level of a term.
type Level struct {
	Name   string
	Jobs   int     // that support it
	Factor float64 // factor on a typical duration
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
