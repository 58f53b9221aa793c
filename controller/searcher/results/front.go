package results

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/report"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// Point is what a trial reached: its best epoch, and what it used up to then.
type Point struct {
	Trial   int       `json:"trial"`
	Epoch   int       `json:"epoch"`
	Amounts []float64 `json:"amounts"` // by the measures of the front
	Front   bool      `json:"front"`   // no other is as good in every measure and better in one
}

// Pareto is what the trials of a search reached in several measures.
type Pareto struct {
	By         []string `json:"by"`
	Points     []Point  `json:"points"`     // the best of the first measure first
	Unmeasured int      `json:"unmeasured"` // trials that lack a measure
	Sources    []string `json:"sources"`    // of joules; amounts of several do not compare
}

// Amount is what a report has of a measure; nil: it was not measured.
func Amount(by string, r searcher.Report) *float64 {
	return map[string]*float64{
		tuning.ByQuality: &r.Value, tuning.ByTime: &r.Seconds, tuning.ByCost: &r.CoreHours, tuning.ByEnergy: r.Joules,
	}[by]
}

// Front compares the trials by some of tuning.SearchMeasures, one at least.
func Front(s *searcher.Searcher, by ...string) Pareto {
	out := Pareto{By: by}
	var losses [][]float64
	for _, t := range s.Ranking() {
		best := s.Best(t)
		p := Point{Trial: t.Number, Epoch: best.Epoch, Front: true}
		var loss []float64
		for _, m := range by {
			v := Amount(m, best)
			if v == nil {
				break
			}
			p.Amounts, loss = append(p.Amounts, *v), append(loss, *v)
			if m == tuning.ByQuality {
				loss[len(loss)-1] = s.Loss(*v)
			}
		}
		if len(loss) < len(by) {
			out.Unmeasured++
			continue
		}
		if slices.Contains(by, tuning.ByEnergy) && best.Source != "" && !slices.Contains(out.Sources, best.Source) {
			out.Sources = append(out.Sources, best.Source)
		}
		out.Points, losses = append(out.Points, p), append(losses, loss)
	}
	for i := range out.Points {
		out.Points[i].Front = !slices.ContainsFunc(losses, func(o []float64) bool { return dominates(o, losses[i]) })
	}
	slices.SortStableFunc(out.Points, func(a, b Point) int {
		c := cmp.Compare(a.Amounts[0], b.Amounts[0])
		if by[0] == tuning.ByQuality && !s.Minimize {
			return -c
		}
		return c
	})
	return out
}

func dominates(a, b []float64) bool {
	better := false
	for i := range a {
		if a[i] > b[i] {
			return false
		}
		better = better || a[i] < b[i]
	}
	return better
}

// Notes say what a reader has to know of the points.
func (p Pareto) Notes() []string {
	var out []string
	switch {
	case p.Unmeasured > 0 && len(p.Points) == 0:
		out = append(out, "Joules were not measured.")
	case p.Unmeasured > 0:
		out = append(out, fmt.Sprintf("%d of %d trials lack joules and are left out.", p.Unmeasured, p.Unmeasured+len(p.Points)))
	}
	return append(out, Origin(p.Sources)...)
}

// Origin says where joules come from.
func Origin(sources []string) []string {
	if len(sources) < 2 {
		return tuning.Each(sources, func(s string) string { return "Source of the joules: " + s + "." })
	}
	return []string{fmt.Sprintf("The joules come from %s and cannot be compared.", strings.Join(sources, " and "))}
}

// Text prints the trials of the front for people.
func (p Pareto) Text() string {
	head := append([]string{"TRIAL", "EPOCH"}, tuning.Each(p.By, strings.ToUpper)...)
	front := slices.DeleteFunc(slices.Clone(p.Points), func(at Point) bool { return !at.Front })
	table := report.List(head, front, func(at Point) []string {
		row := []string{strconv.Itoa(at.Trial), strconv.Itoa(at.Epoch)}
		for i, m := range p.By {
			row = append(row, Print(m, at.Amounts[i]))
		}
		return row
	})
	return table + strings.Join(append(p.Notes(), ""), "\n")
}

// Print prints an amount of a measure with its unit.
func Print(by string, v float64) string {
	switch by {
	case tuning.ByTime:
		return report.Duration(v)
	case tuning.ByEnergy:
		return report.Joules(v)
	case tuning.ByCost:
		return fmt.Sprintf("%.3g core-hours", v)
	}
	return fmt.Sprintf("%.4g", v)
}
