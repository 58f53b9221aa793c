package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pitchpipe/controller/report"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/results"
	"pitchpipe/controller/tuning"
)

// moment is one report, and what the whole search had used by then.
type moment struct {
	searcher.Report
	trial int
	used  float64
}

// moments are the reports in the order in which they came.
func moments(s *searcher.Searcher, by string) (out []moment, unmeasured int) {
	for i := range s.Trials {
		for _, r := range s.Trials[i].Reports {
			out = append(out, moment{r, i, r.At})
		}
	}
	slices.SortStableFunc(out, func(a, b moment) int { return cmp.Compare(a.Seq, b.Seq) })
	if by == tuning.ByTime {
		return out, 0
	}
	sum, of := 0.0, make([]float64, len(s.Trials)) // what each trial had at its report before
	for i, m := range out {
		if v := results.Amount(by, m.Report); v != nil {
			sum += *v - of[m.trial]
			of[m.trial] = *v
		} else {
			unmeasured++
		}
		out[i].used = sum
	}
	return out, unmeasured
}

// progress is the best value so far over what the search used.
func progress(s *searcher.Searcher, by string) (picture.Sheet, error) {
	all, unmeasured := moments(s, by)
	if unmeasured == len(all) {
		return picture.Sheet{}, fmt.Errorf("%w: joules were not measured", ErrEmpty)
	}
	seen := clip(s, tuning.Each(all, func(m moment) float64 { return m.Value }))
	of := map[string]string{tuning.ByTime: "since the search began", tuning.ByEnergy: "of the whole search"}[by]
	label, u := fitting(by, of, all[len(all)-1].used)
	var steps, gains, own plotter.XYs
	var sources []string
	best, bests := all[0], map[int]plotter.XY{}
	for i, m := range all {
		at := plotter.XY{X: m.used / u.factor, Y: seen.at(m.Value)}
		if old, known := bests[m.trial]; !known || s.Whole(m.Report) && s.Loss(at.Y) < s.Loss(old.Y) {
			bests[m.trial] = at
		}
		if by == tuning.ByEnergy && m.Source != "" && !slices.Contains(sources, m.Source) {
			sources = append(sources, m.Source)
		}
		if i == 0 || s.Whole(m.Report) && s.Loss(m.Value) < s.Loss(best.Value) {
			best = m
			steps, gains = append(steps, at), append(gains, at)
		}
	}
	for i := range s.Trials {
		if at, ok := bests[i]; ok {
			own = append(own, at)
		}
	}
	end := steps[len(steps)-1]
	end.X = all[len(all)-1].used / u.factor
	over := picture.Line(append(steps, end), picture.Blue, 1.5)
	over.StepStyle = plotter.PostStep
	each := picture.Dots(own, color.NRGBA{0x99, 0x99, 0x99, 0xb0}, 2, draw.CircleGlyph{})
	gain := picture.Dots(gains, picture.Blue, 2.5, draw.CircleGlyph{})
	p := picture.New(label, "value ("+direction(s)+")")
	out := picture.Sheet{
		Title:  fmt.Sprintf("Best value so far: %.4g, trial %d after %s", best.Value, s.Trials[best.trial].Number, report.Count(best.Epoch, "epoch")),
		Plot:   p,
		Legend: []picture.Entry{{Name: "best so far", Mark: over}, {Name: "new best", Mark: gain}, {Name: "best of each trial", Mark: each}},
	}
	p.Add(plotter.NewGrid(), each, over, gain)
	if s.Target != nil {
		p.Y.Min, p.Y.Max = min(p.Y.Min, *s.Target), max(p.Y.Max, *s.Target)
		target := picture.Line(plotter.XYs{{X: 0, Y: *s.Target}, {X: max(end.X, 1e-9), Y: *s.Target}}, picture.Red, 1, 5, 3)
		out.Add("target", target)
	}
	picture.Pad(&p.Y)
	p.X.Min, p.X.Max = 0, max(p.X.Max, 1e-3)
	out.Notes = seen.note(results.Origin(sources), "epoch")
	if unmeasured > 0 {
		out.Notes = append(out.Notes, fmt.Sprintf("Joules were not measured in %d of %s.", unmeasured, report.Count(len(all), "epoch")))
	}
	return out, nil
}

// front is the Pareto front of the value and another measure.
func front(s *searcher.Searcher, by string) (picture.Sheet, error) {
	pareto := results.Front(s, tuning.ByQuality, by)
	if len(pareto.Points) == 0 {
		return picture.Sheet{}, fmt.Errorf("%w: joules were not measured", ErrEmpty)
	}
	seen := clip(s, tuning.Each(pareto.Points, func(p results.Point) float64 { return p.Amounts[0] }))
	used := tuning.Each(pareto.Points, func(p results.Point) float64 { return p.Amounts[1] })
	least, most := floats.Min(used), floats.Max(used)
	label, u := fitting(by, "up to a trial's best epoch", most)
	var on, off plotter.XYs
	var names []string
	for _, at := range pareto.Points {
		xy := plotter.XY{X: at.Amounts[1] / u.factor, Y: seen.at(at.Amounts[0])}
		if at.Front {
			on, names = append(on, xy), append(names, fmt.Sprintf("%d", at.Trial))
		} else {
			off = append(off, xy)
		}
	}
	path := picture.Line(slices.Clone(on), picture.Blue, 1.2)
	slices.Reverse(path.XYs) // from the cheapest to the best
	path.StepStyle = plotter.PostStep
	p := picture.New(label, "best value of a trial ("+direction(s)+")")
	best, others := picture.Dots(on, picture.Blue, 3.5, draw.CircleGlyph{}), picture.Dots(off, picture.Grey, 2.5, draw.RingGlyph{})
	p.Add(plotter.NewGrid(), others, path, best)
	const room = 15 // for the numbers of trials
	title := fmt.Sprintf("Value against %s: the Pareto front has %d of %s", by, len(on), report.Count(len(pareto.Points), "trial"))
	out := picture.Sheet{Title: title, Notes: pareto.Notes(), Plot: p, Legend: []picture.Entry{{Name: "on the front", Mark: best}}}
	if len(off) > 0 {
		out.Legend = append(out.Legend, picture.Entry{Name: "another trial is as good in both and better in one", Mark: others})
	}
	if len(on) <= room {
		labels := &plotter.Labels{XYs: on, Labels: names, Offset: vg.Point{Y: 9}} // away from the line
		if s.Minimize {
			labels.Offset.Y = -9
		}
		labels.TextStyle = slices.Repeat([]text.Style{picture.Words(9, draw.XCenter)}, len(on))
		p.Add(labels)
		out.Notes = append(out.Notes, "The numbers are those of the trials.")
	}
	out.Notes = seen.note(out.Notes, "trial")
	picture.Pad(&p.Y)
	const wide, wild = 20, 1e6 // a linear axis would hide the small ones, as a logarithmic one hides the others
	if most > wide*least && most < wild*least {
		p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		p.X.Min, p.X.Max = p.X.Min/1.2, p.X.Max*1.2
		p.X.Label.Text += ", logarithmic"
	} else {
		picture.Pad(&p.X)
		p.X.Min = max(p.X.Min, 0)
	}
	return out, nil
}
