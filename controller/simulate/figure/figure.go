package figure

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/tuning"
)

// Shares is the share of jobs by a time, a curve for each policy.
type Shares struct {
	sheet picture.Sheet
	of    func(*simulate.Job) float64
}

// Waits is a picture of the share of jobs by the longest time that they waited.
func Waits() *Shares {
	return shares("Time in the queue", func(j *simulate.Job) float64 { return j.Wait })
}

// Completions is a picture of the share of jobs by the longest time from submission to end.
func Completions() *Shares { return shares("Time from submission to end", (*simulate.Job).JCT) }

// points is how many points a curve has at most: more are not seen.
const points = 400

func shares(title string, of func(*simulate.Job) float64) *Shares {
	p := picture.New("", "share of jobs")
	at := func(seconds float64, name string) plot.Tick { return plot.Tick{Value: seconds, Label: name} }
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.ConstantTicks{
		at(1, "≤ 1 s"), at(10, "10 s"), at(60, "1 min"), at(600, "10 min"), at(3600, "1 h"), at(36000, "10 h"), at(86400, ""),
		at(864000, "10 days"), at(8640000, "100 days"),
	}
	return &Shares{sheet: picture.Sheet{Title: title, Plot: p}, of: of}
}

// Add adds the curve of a policy.
func (s *Shares) Add(r simulate.Result) {
	values := tuning.Each(r.Jobs, func(j *simulate.Job) float64 { return max(s.of(j), 1) }) // the axis is logarithmic
	slices.Sort(values)
	var curve plotter.XYs
	for k := range points {
		if at := (k + 1) * len(values) / points; at > 0 {
			curve = append(curve, plotter.XY{X: values[at-1], Y: float64(at) / float64(len(values))})
		}
	}
	colours := []picture.Colour{
		picture.Blue, picture.Orange, picture.Green, picture.Red, picture.Purple, picture.Sky, picture.Black, picture.Grey,
	}
	n, dashes := len(s.sheet.Legend), []vg.Length{}
	if n >= len(colours) {
		dashes = append(dashes, 5, 3)
	}
	s.sheet.Add(r.Spec.Name, picture.Line(curve, colours[n%len(colours)], 1.5, dashes...))
}

// Sheet is the picture of what was added.
func (s *Shares) Sheet() picture.Sheet {
	p := s.sheet.Plot
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, max(p.X.Max, 10), 0, 1
	return s.sheet
}

// Timeline is how many jobs ran and waited over the time of a simulation.
func Timeline(r simulate.Result) picture.Sheet {
	const day = 86400
	var runs, waits plotter.XYs
	every := max(1, len(r.Moments)/points)
	for i, m := range r.Moments {
		if i%every == 0 {
			at := (m.At - r.Moments[0].At) / day
			runs, waits = append(runs, plotter.XY{X: at, Y: float64(m.Running)}), append(waits, plotter.XY{X: at, Y: float64(m.Waiting)})
		}
	}
	out := picture.Sheet{Title: "Jobs under " + r.Spec.Name, Plot: picture.New("days since the first submission", "jobs")}
	out.Add("run", picture.Line(runs, picture.Blue, 1))
	out.Add("wait", picture.Line(waits, picture.Orange, 1))
	out.Plot.Y.Min = 0
	return out
}

// most is how many levels a picture has room for.
const most = 33

// Term draws a term.
func Term(t durations.Term) (picture.Sheet, error) {
	levels := t.Levels[:min(most, len(t.Levels))]
	values, names := make(plotter.Values, len(levels)), make([]string, len(levels))
	for i, l := range levels {
		last := len(levels) - 1 - i // the first is at the top
		values[last], names[last] = math.Log2(l.Factor), fmt.Sprintf("%s (%d)", l.Name, l.Jobs)
	}
	bars, err := plotter.NewBarChart(values, 7)
	if err != nil {
		return picture.Sheet{}, fmt.Errorf("term %s: %w", t.Name, err)
	}
	bars.Horizontal, bars.Color, bars.LineStyle.Width = true, picture.Blue, 0
	p := picture.New("factor on the duration", "")
	p.Add(bars)
	p.NominalY(names...)
	p.Y.Tick.Label.Font.Size = 7
	p.X.Tick.Marker = plot.TickerFunc(func(low, high float64) []plot.Tick {
		ticks := picture.Round(low, high)
		for i, tick := range ticks {
			if tick.Label != "" {
				ticks[i].Label = "x" + strconv.FormatFloat(math.Exp2(tick.Value), 'g', 2, 64)
			}
		}
		return ticks
	})
	s := picture.Sheet{Title: "Duration by " + t.Name, Plot: p, Notes: []string{"In parentheses the jobs of each level."}}
	if left := len(t.Levels) - len(levels); left > 0 {
		s.Notes[0] += fmt.Sprintf(" Levels with fewer jobs, which are not drawn: %d.", left)
	}
	return s, nil
}
