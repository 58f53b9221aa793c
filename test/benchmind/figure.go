package benchmind

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// figure is one plot of the report.
type figure struct {
	name, title string // of its file, without .svg
	x, y        string
	groups      []string // of bars; nil: lines
	series      []series
	floor       float64 // of y: what is below is drawn there; 0: no bars are below 0
}

// series are the points of one line, or the bars of one kind.
type series struct {
	name   string
	points []point // of bars: by group, x is left out
}

type point struct{ x, y float64 }

// palette are colours that stay apart for those who see few of them (Okabe and Ito).
func palette(i int) color.Color {
	all := []color.RGBA{
		{0x00, 0x00, 0x00, 0xff},
		{0x00, 0x72, 0xb2, 0xff},
		{0xe6, 0x9f, 0x00, 0xff},
		{0x00, 0x9e, 0x73, 0xff},
		{0xd5, 0x5e, 0x00, 0xff},
		{0xcc, 0x79, 0xa7, 0xff},
		{0x56, 0xb4, 0xe9, 0xff},
		{0xf0, 0xe4, 0x42, 0xff},
	}
	return all[i%len(all)]
}

// dashes tell lines of one colour apart.
func dashes(i int) []vg.Length {
	if i < 8 {
		return nil
	}
	return []vg.Length{vg.Points(4), vg.Points(2)}
}

// draw writes the figure into the folder.
func (f figure) draw(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
	p.Legend.Top, p.Legend.Left = true, false
	p.BackgroundColor = color.White
	width, height := 22*vg.Centimeter, 12*vg.Centimeter
	var err error
	if f.groups != nil {
		width = vg.Centimeter * vg.Length(max(22, 1.6*float64(len(f.groups))))
		height = 14 * vg.Centimeter
		err = f.bars(p)
	} else {
		err = f.lines(p)
	}
	if err != nil {
		return fmt.Errorf("plot %s: %w", f.name, err)
	}
	canvas := vgsvg.New(width, height)
	p.Draw(draw.New(canvas))
	out, err := os.Create(filepath.Join(folder, f.name+".svg")) //nolint:gosec // the user named the folder
	if err != nil {
		return fmt.Errorf("plot %s: %w", f.name, err)
	}
	if _, err := canvas.WriteTo(out); err != nil {
		_ = out.Close() // the first error counts
		return fmt.Errorf("plot %s: %w", f.name, err)
	}
	return out.Close()
}

func (f figure) lines(p *plot.Plot) error {
	p.Add(plotter.NewGrid())
	for i, s := range f.series {
		xys := make(plotter.XYs, len(s.points))
		for j, pt := range s.points {
			xys[j] = plotter.XY{X: pt.x, Y: pt.y}
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		line.Color, line.Width, line.Dashes = palette(i), vg.Points(1.5), dashes(i)
		dots.Color, dots.Shape, dots.Radius = palette(i), draw.CircleGlyph{}, vg.Points(2)
		p.Add(line, dots)
		p.Legend.Add(s.name, line, dots)
	}
	p.Y.Max += 0.07 * float64(len(f.series)) * (p.Y.Max - p.Y.Min) // room for the legend
	return nil
}

func (f figure) bars(p *plot.Plot) error {
	width := vg.Points(32 / float64(len(f.series)))
	for i, s := range f.series {
		values := make(plotter.Values, len(f.groups))
		for j := range values {
			values[j] = max(s.points[j].y, f.floor)
		}
		bars, err := plotter.NewBarChart(values, width)
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		bars.Color, bars.LineStyle.Width = palette(i), 0
		bars.Offset = width * vg.Length(float64(i)-float64(len(f.series)-1)/2)
		p.Add(bars)
		p.Legend.Add(s.name, bars)
	}
	p.NominalX(f.groups...)
	p.X.Tick.Label.Rotation = math.Pi / 4
	p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	p.Y.Max = max(p.Y.Max, 0) + 0.35*(max(p.Y.Max, 0)-p.Y.Min) // room for the legend
	return nil
}

// savings are bars of 1 - ratio: what is saved of the owner's cost.
func savings(name, of string) func(object) []figure {
	return func(o object) []figure {
		f := figure{
			name: name, title: "Saving of " + of + ", relative to the owner's settings", y: "saving (share; below -0.5 is drawn there)", floor: -0.5, groups: []string{},
			x: "left out: where the oracle saves under 1 %. A policy that breaks a limit may save more than the oracle.",
		}
		rows := slices.DeleteFunc(slices.Clone(o.Rows), func(r fields) bool {
			v, _ := r.number("oracle_ratio")
			return 1-v < 0.01
		})
		for _, s := range []struct{ name, key string }{
			{"oracle", "oracle_ratio"},
			{"tuner, final setting", "final_ratio"},
			{"tuner, all runs", "cumulative_ratio"},
			{"one knob, all runs", "single_knob_cumulative_ratio"},
			{"random, all runs", "random_cumulative_ratio"},
		} {
			line := series{name: s.name}
			for _, r := range rows {
				v, _ := r.number(s.key)
				line.points = append(line.points, point{y: 1 - v})
			}
			f.series = append(f.series, line)
		}
		for _, r := range rows {
			f.groups = append(f.groups, strings.TrimSpace(strings.Join([]string{r.word("workload"), r.word("machine"), r.word("part")}, " ")))
		}
		if len(f.groups) == 0 {
			return nil
		}
		return []figure{f}
	}
}

// recognised is precision against the share recognised, as the limit of distance moves.
func recognised(o object) []figure {
	f := figure{name: "classifier", title: "Precision against the share recognised, as the limit of the distance moves", x: "share recognised", y: "precision"}
	all, unknown := series{name: "precision"}, series{name: "1 - programs left out that are called known"}
	for _, t := range o.Summary.list("thresholds") {
		x, ok := t.number("recognised")
		y, known := t.number("precision")
		if ok && known {
			all.points = append(all.points, point{x, y})
		}
		if y, known := t.number("unknown_called_known"); ok && known {
			unknown.points = append(unknown.points, point{x, 1 - y})
		}
	}
	for _, s := range []series{all, unknown} {
		if len(s.points) > 0 {
			f.series = append(f.series, s)
		}
	}
	return some(f)
}

// some is the figure where it has anything to show.
func some(f figure) []figure {
	if len(f.series) == 0 {
		return nil
	}
	return []figure{f}
}

// forecasts are errors against the share that was seen, geometric means over workloads.
func forecasts(o object) []figure {
	f := figure{name: "forecast", title: "Error of the value at the end, geometric mean over the workloads", x: "share of the epochs seen", y: "median error (share of the true value)"}
	for _, s := range []struct{ name, key string }{
		{"ensemble", "final_error_median"}, {"ensemble without earlier runs", "alone_error_median"}, {"last value", "last_value_error_median"}, {"best single model, in hindsight", "best_single_error_median"},
	} {
		sums, counts := map[float64]float64{}, map[float64]float64{}
		for _, r := range o.Rows {
			seen, ok := r.number("seen")
			if v, known := r.number(s.key); ok && known && v > 0 {
				sums[seen] += math.Log(v)
				counts[seen]++
			}
		}
		line := series{name: s.name}
		for seen, n := range counts {
			line.points = append(line.points, point{seen, math.Exp(sums[seen] / n)})
		}
		f.add(line)
	}
	return some(f)
}

// add puts the points in order and leaves an empty line out.
func (f *figure) add(s series) {
	if len(s.points) == 0 {
		return
	}
	slices.SortFunc(s.points, func(a, b point) int {
		switch {
		case a.x < b.x:
			return -1
		case a.x > b.x:
			return 1
		default:
			return 0
		}
	})
	f.series = append(f.series, s)
}

// regrets are log ratios against the number of evaluations, a figure for each file.
func regrets(o object) []figure {
	var out []figure
	files, of := byWord(o.Summary.list("means"), "data")
	for _, file := range files {
		f := figure{
			name: "search-" + family(file), title: "Regret of searches on " + family(file), x: "evaluations", y: "mean ln(found / best)",
		}
		var methods []string
		for _, m := range of[file] {
			if !slices.Contains(methods, m.word("method")) {
				methods = append(methods, m.word("method"))
			}
		}
		for _, method := range methods {
			line := series{name: strings.ReplaceAll(method, "_", " ")}
			for _, m := range where(of[file], fields{"method": method}) {
				budget, _ := m.number("budget")
				if v, ok := m.number("log_ratio_mean"); ok {
					line.points = append(line.points, point{budget, v})
				}
			}
			f.add(line)
		}
		out = append(out, some(f)...)
	}
	return out
}

// powers are the shares that find an effect, of all nulls without a limit.
func powers(o object) []figure {
	f := figure{name: "verify", title: "Power against the size of the effect, mean over the nulls", x: "effect (share)", y: "share that finds it"}
	kinds := map[string]bool{}
	all := o.Summary.list("power")
	for _, p := range all {
		name := p.word("comparison") + ", " + p.word("source")
		if kinds[name] {
			continue
		}
		kinds[name] = true
		line := series{name: name}
		for _, r := range where(all, fields{"comparison": p.word("comparison"), "source": p.word("source")}) {
			x, _ := r.number("effect")
			y, _ := r.number("power")
			line.points = append(line.points, point{x, y})
		}
		f.add(line)
	}
	return some(f)
}

// cell prints a value of a table.
func cell(v any, digits int) string {
	switch v := v.(type) {
	case nil:
		return "-"
	case string:
		return strings.ReplaceAll(strings.ReplaceAll(v, "|", "\\|"), "\n", " ")
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1e15 && digits == 0 {
			return strconv.FormatFloat(v, 'f', 0, 64)
		}
		return strconv.FormatFloat(v, 'f', digits, 64)
	default:
		return fmt.Sprint(v)
	}
}
