package figure

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/report"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// Kind is what a picture shows.
type Kind string

// The kinds.
const (
	BestTime    Kind = "best-" + tuning.ByTime    // the best value so far over time
	BestEnergy  Kind = "best-" + tuning.ByEnergy  // the same over joules
	Parallel    Kind = "parallel"                 // the hyperparameters of each trial, coloured by its value
	FrontEnergy Kind = "front-" + tuning.ByEnergy // the Pareto front of value and joules
	FrontTime   Kind = "front-" + tuning.ByTime   // of value and running time
	FrontCost   Kind = "front-" + tuning.ByCost   // of value and core-hours
	Rungs       Kind = "rungs"                    // the life of each trial
)

// Kinds lists the kinds.
func Kinds() []Kind {
	return []Kind{BestTime, BestEnergy, Parallel, FrontEnergy, FrontTime, FrontCost, Rungs}
}

// What Draw cannot draw. ErrEmpty means that the search has nothing of the kind to show, yet or ever.
var (
	ErrKind  = errors.New("no such plot")
	ErrEmpty = errors.New("nothing to draw")
)

// Draw writes a picture of the search.
func Draw(w io.Writer, kind Kind, format picture.Format, s *searcher.Searcher) error {
	what, by, _ := strings.Cut(string(kind), "-")
	of := map[string]func(s *searcher.Searcher, by string) (picture.Sheet, error){"best": progress, "front": front, "parallel": parallel, "rungs": rungs}[what]
	if !slices.Contains(Kinds(), kind) {
		return fmt.Errorf("%w: %q, want one of %v", ErrKind, kind, Kinds())
	}
	if what != "rungs" && len(s.Ranking()) == 0 {
		return fmt.Errorf("plot %s: %w: no trial has reported an epoch", kind, ErrEmpty)
	}
	sheet, err := of(s, by)
	if err == nil {
		err = sheet.Write(w, format)
	}
	if err != nil {
		return fmt.Errorf("plot %s: %w", kind, err)
	}
	return nil
}

// unit is one of a measure's units, and how many of the base unit it has.
type unit struct {
	name   string
	factor float64
}

// fitting is the greatest unit of a measure that fits at least twice, and a label with what is counted.
func fitting(by, of string, most float64) (label string, u unit) {
	all := map[string][]unit{ // ascending
		tuning.ByEnergy: {{"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}, {"GJ", 1e9}},
		tuning.ByCost:   {{"core-hours", 1}},
		tuning.ByTime:   {{"s", 1}, {"min", 60}, {"h", 3600}, {"days", 24 * 3600}},
	}[by]
	u = all[0]
	for _, other := range all {
		if most >= 2*other.factor {
			u = other
		}
	}
	return fmt.Sprintf("%s %s (%s)", by, of, u.name), u
}

func direction(s *searcher.Searcher) string {
	if s.Minimize {
		return "lower is better"
	}
	return "higher is better"
}

// window is which values are drawn: a few far from all others would hide what differs near the best.
type window struct {
	*searcher.Searcher
	worst, best float64
	edge        int // values that were moved to the edge
}

// clip makes the worst value to draw ten times as far from the best as the middle one.
func clip(s *searcher.Searcher, values []float64) *window {
	sorted := slices.Sorted(slices.Values(values))
	w := &window{Searcher: s, worst: sorted[0], best: sorted[len(sorted)-1]}
	if s.Minimize {
		w.worst, w.best = w.best, w.worst
	}
	limit := w.best + 10*(stat.Quantile(0.5, stat.Empirical, sorted, nil)-w.best)
	if limit != w.best && s.Loss(limit) < s.Loss(w.worst) {
		w.worst = limit
	}
	return w
}

// at is a value, at the edge where it is worse.
func (w *window) at(v float64) float64 {
	if w.Loss(w.worst) < w.Loss(v) {
		w.edge++
		return w.worst
	}
	return v
}

func (w *window) note(notes []string, noun string) []string {
	if w.edge == 0 {
		return notes
	}
	return append(notes, fmt.Sprintf("%s with a far worse value drawn at the edge.", report.Count(w.edge, noun)))
}

func short(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return strings.TrimSpace(string(r[:most-1])) + "…"
	}
	return s
}
