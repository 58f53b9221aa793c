package figure

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pitchpipe/controller/report"
	"pitchpipe/controller/report/picture"
	"pitchpipe/controller/searcher"
	"pitchpipe/controller/tuning"
)

// scale is one vertical axis: where values lie on it, from 0 to 1, and its labels.
type scale struct {
	knob   string
	at     func(tuning.Value) float64
	labels []plot.Tick
}

// missing is where trials pass an axis whose knob does not count for them.
const missing = -0.08

// number prints a number of an axis in three digits, memory with its unit.
func number(knob string, v float64) string {
	if knob == tuning.Memory {
		return tuning.Bytes(v).Human()
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// numbers is an axis of numbers, logarithmic if so wished and the greatest is ten times the least. It
// labels the values where they are few.
func numbers(knob string, values []float64, logarithmic bool) scale {
	low, high := values[0], values[len(values)-1]
	share := func(v float64) float64 { return (v - low) / (high - low) }
	back := func(u float64) float64 { return low + u*(high-low) }
	const wide, wild, steps, apart = 10, 1e12, 4, 0.06
	switch {
	case low == high:
		share = func(float64) float64 { return 0.5 }
	case logarithmic && high >= wide*low && high <= wild*low:
		share = func(v float64) float64 { return math.Log(v/low) / math.Log(high/low) }
		back = func(u float64) float64 { return low * math.Pow(high/low, u) }
	}
	crowded := len(values) > 2*steps
	for i := range values[1:] {
		crowded = crowded || share(values[i+1])-share(values[i]) < apart
	}
	if crowded || !logarithmic {
		values = nil
		for i := range steps + 1 {
			values = append(values, back(float64(i)/steps))
		}
	}
	out := scale{knob: knob, at: func(v tuning.Value) float64 { return share(v.Float()) }}
	out.labels = tuning.Each(values, func(v float64) plot.Tick { return plot.Tick{Value: share(v), Label: number(knob, v)} })
	return out
}

// names is an axis of words.
func names(values []tuning.Value) scale {
	place := func(i int) float64 { return (float64(i) + 0.5) / float64(len(values)) }
	out := scale{at: func(v tuning.Value) float64 { return place(slices.Index(values, v)) }}
	const room = 20
	for i := 0; i < len(values); i += 1 + len(values)/room {
		out.labels = append(out.labels, plot.Tick{Value: place(i), Label: short(report.Legible(values[i].String()), 12)})
	}
	return out
}

func axis(trials []*searcher.Trial, knob string) scale {
	values, wordy, absent := map[tuning.Value]bool{}, false, false
	for _, t := range trials {
		v := t.Settings[knob]
		if !v.IsSet() {
			absent = true
			continue
		}
		values[v] = true
		wordy = wordy || !v.IsNumber()
	}
	sorted := slices.SortedFunc(maps.Keys(values), tuning.Value.Compare)
	out := names(sorted)
	if !wordy {
		out = numbers(knob, tuning.Each(sorted, tuning.Value.Float), true)
	}
	if out.knob = knob; absent {
		set := out.at
		out.at = func(v tuning.Value) float64 {
			if !v.IsSet() {
				return missing
			}
			return set(v)
		}
		out.labels = append(out.labels, plot.Tick{Value: missing, Label: "not set"})
	}
	return out
}

// ramp is the colour of a share from 0 (worst, pale) to 1 (best, dark): viridis, backwards.
func ramp(share float64, alpha uint8) color.Color {
	stops := [][3]float64{{0xfd, 0xe7, 0x25}, {0x5e, 0xc9, 0x62}, {0x21, 0x91, 0x8c}, {0x3b, 0x52, 0x8b}, {0x44, 0x01, 0x54}}
	at := min(max(share, 0), 1) * float64(len(stops)-1)
	i := min(int(at), len(stops)-2)
	var out [3]uint8
	for j := range out {
		out[j] = uint8(math.Round(stops[i][j] + (at-float64(i))*(stops[i+1][j]-stops[i][j])))
	}
	return color.NRGBA{out[0], out[1], out[2], alpha}
}

// scales draws the axes and their labels over the lines.
type scales []scale

// Plot implements plot.Plotter.
func (all scales) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	style := picture.Words(8, draw.XLeft)
	for i, s := range all {
		at := x(float64(i))
		c.StrokeLine2(draw.LineStyle{Color: picture.Black, Width: 0.8}, at, y(0), at, y(1))
		for _, l := range s.labels {
			height := y(l.Value)
			c.StrokeLine2(draw.LineStyle{Color: picture.Black, Width: 0.8}, at-2, height, at+2, height)
			size := style.Width(l.Label)
			c.FillPolygon(color.NRGBA{0xff, 0xff, 0xff, 0xc8}, []vg.Point{
				{X: at + 3, Y: height - 4.5}, {X: at + 5 + size, Y: height - 4.5}, {X: at + 5 + size, Y: height + 4.5}, {X: at + 3, Y: height + 4.5},
			})
			c.FillText(style, vg.Point{X: at + 4, Y: height}, l.Label)
		}
		head := picture.Words(9, draw.XCenter)
		name := short(report.Legible(s.knob), max(6, 110/len(all)))
		c.FillText(head, vg.Point{X: at, Y: y(1) + 8 + 11*vg.Length(i%2)}, name) // neighbours at two heights
	}
}

// parallel shows the hyperparameters of each trial as a line, coloured by its rank.
func parallel(s *searcher.Searcher, _ string) (picture.Sheet, error) {
	trials := s.Ranking()
	settings := tuning.Each(trials, func(t *searcher.Trial) tuning.Settings { return t.Settings })
	values := tuning.Each(trials, func(t *searcher.Trial) float64 { return s.Best(t).Value })
	slices.SortStableFunc(trials, func(a, b *searcher.Trial) int { // the best is drawn last
		return cmp.Compare(s.Loss(s.Best(b).Value), s.Loss(s.Best(a).Value))
	})
	all := scales(tuning.Each(tuning.Knobs(settings), func(name string) scale { return axis(trials, name) }))
	seen := clip(s, values)
	value := numbers("value", []float64{seen.worst, seen.best}, false) // the best on top, whichever way is better
	all = append(all, value)
	p := picture.New("", "")
	p.HideAxes()
	alpha, thin := uint8(0xff), vg.Length(1)
	const many = 60
	if len(trials) > many {
		alpha, thin = 0x90, 0.6
	}
	draws := func(t *searcher.Trial, c color.Color, width vg.Length) *plotter.Line {
		var at plotter.XYs
		for i, a := range all[:len(all)-1] {
			at = append(at, plotter.XY{X: float64(i), Y: a.at(t.Settings[a.knob])})
		}
		return picture.Line(append(at, plotter.XY{X: float64(len(all) - 1), Y: value.at(tuning.Number(seen.at(s.Best(t).Value)))}), c, width)
	}
	for i, t := range trials[:len(trials)-1] {
		p.Add(draws(t, ramp(float64(i)/float64(len(trials)-1), alpha), thin))
	}
	top := trials[len(trials)-1]
	winner := draws(top, picture.Red, 2)
	p.Add(winner, all)
	p.X.Min, p.X.Max = -0.06*float64(len(all)), 1.08*float64(len(all))-1+0.05
	p.Y.Min, p.Y.Max = missing-0.02, 1.12
	out := picture.Sheet{
		Plot:   p,
		Title:  fmt.Sprintf("Hyperparameters of %s and the best value of each (%s)", report.Count(len(trials), "trial"), direction(s)),
		Notes:  []string{"A trial that ended early counts with the best value that it reached."},
		Legend: []picture.Entry{{Name: fmt.Sprintf("best: trial %d, %.4g", top.Number, s.Best(top).Value), Mark: winner}},
	}
	for i, name := range []string{"better", "middle", "worse"} {
		if len(trials) > 1 {
			out.Legend = append(out.Legend, picture.Entry{Name: name, Mark: picture.Line(nil, ramp(1-float64(i)/2, 0xff), 3)})
		}
	}
	if lacking := len(s.Trials) - len(trials); lacking > 0 {
		out.Notes[0] += fmt.Sprintf(" Without a value: %s.", report.Count(lacking, "trial"))
	}
	out.Notes = seen.note(out.Notes, "trial")
	return out, nil
}
