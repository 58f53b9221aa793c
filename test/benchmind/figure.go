package benchmind

import (
	"cmp"
	"fmt"
	"image/color"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// chart says what of an evaluation is drawn.
type chart struct {
	title, x, y string
	rows        func(object) []fields
	split       string   // key of a word: one figure for each file that it names; empty: one figure
	names       []string // keys of the words that name a line, for one key in of
	at          string   // key of x; empty: the row's number, with its workload as the label
	of          []line
}

// line is one key of the rows.
type line struct {
	name, key string
	saving    bool // 1 - value is drawn, at least -0.5
}

// figure is one plot.
type figure struct {
	name, title string // of its file, without .svg
	x, y        string
	labels      []string // of x; nil: numbers
	lines       map[string]map[float64][]float64
}

// figures collects the points. Values of a line at the same x become their geometric mean.
func (c chart) figures(name string, o object) []figure {
	all := map[string]*figure{}
	for i, r := range c.rows(o) {
		part := name
		if c.split != "" {
			part += "-" + family(r.word(c.split))
		}
		f := all[part]
		if f == nil {
			f = &figure{name: part, title: c.title, x: c.x, y: c.y, lines: map[string]map[float64][]float64{}}
			all[part] = f
		}
		x, known := float64(i), true
		if c.at != "" {
			x, known = r.number(c.at)
		} else {
			f.labels = append(f.labels, strings.TrimSpace(strings.Join([]string{r.word("workload"), r.word("machine"), r.word("part")}, " ")))
		}
		for _, l := range c.of {
			y, ok := r.number(l.key)
			if !ok || !known {
				continue
			}
			if l.saving {
				y = max(1-y, -0.5)
			}
			var words []string
			for _, k := range c.names {
				words = append(words, strings.ReplaceAll(r.word(k), "_", " "))
			}
			title := cmp.Or(l.name, strings.Join(words, ", "))
			if f.lines[title] == nil {
				f.lines[title] = map[float64][]float64{}
			}
			f.lines[title][x] = append(f.lines[title][x], y)
		}
	}
	var out []figure
	for _, part := range slices.Sorted(maps.Keys(all)) {
		if len(all[part].lines) > 0 {
			out = append(out, *all[part])
		}
	}
	return out
}

func mean(values []float64) float64 {
	if len(values) == 1 {
		return values[0]
	}
	sum := 0.0
	for _, v := range values {
		sum += math.Log(max(v, 1e-12))
	}
	return math.Exp(sum / float64(len(values)))
}

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

// draw writes the figure into the folder.
func (f figure) draw(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = f.title, f.x, f.y
	p.Legend.Top, p.BackgroundColor = true, color.White
	p.Add(plotter.NewGrid())
	for i, name := range slices.Sorted(maps.Keys(f.lines)) {
		var xys plotter.XYs
		for _, x := range slices.Sorted(maps.Keys(f.lines[name])) {
			xys = append(xys, plotter.XY{X: x, Y: mean(f.lines[name][x])})
		}
		line, dots, err := plotter.NewLinePoints(xys)
		if err != nil {
			return fmt.Errorf("plot %s: %s: %w", f.name, name, err)
		}
		line.Color, line.Width = palette(i), vg.Points(1.5)
		if i >= 8 { // the colours begin again
			line.Dashes = []vg.Length{vg.Points(4), vg.Points(2)}
		}
		dots.Color, dots.Shape, dots.Radius = palette(i), draw.CircleGlyph{}, vg.Points(2)
		if f.labels == nil { // rows have no order that a line could show
			p.Add(line)
		}
		p.Add(dots)
		p.Legend.Add(name, line, dots)
	}
	width := 22 * vg.Centimeter
	if f.labels != nil {
		width = vg.Centimeter * vg.Length(max(22, 1.6*float64(len(f.labels))))
		p.NominalX(f.labels...)
		p.X.Tick.Label.Rotation = math.Pi / 4
		p.X.Tick.Label.XAlign, p.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
	p.Y.Max += 0.07 * float64(len(f.lines)) * (p.Y.Max - p.Y.Min) // room for the legend
	canvas := vgsvg.New(width, 14*vg.Centimeter)
	p.Draw(draw.New(canvas))
	var text strings.Builder
	if _, err := canvas.WriteTo(&text); err != nil {
		return fmt.Errorf("plot %s: %w", f.name, err)
	}
	return os.WriteFile(filepath.Join(folder, f.name+".svg"), []byte(text.String()), 0o644) //nolint:gosec // a report that others may read
}

// savings are shares of the owner's cost that are saved.
func savings(of string) chart {
	return chart{
		title: "Saving of " + of + ", relative to the owner's settings", y: "saving (share; below -0.5 is drawn there)",
		x: "left out: where the oracle saves under 1 %. A policy that breaks a limit may save more than the oracle.",
		rows: func(o object) []fields {
			return slices.DeleteFunc(slices.Clone(o.Rows), func(r fields) bool {
				v, _ := r.number("oracle_ratio")
				return 1-v < 0.01
			})
		},
		of: []line{
			{"oracle", "oracle_ratio", true},
			{"tuner, final setting", "final_ratio", true},
			{"tuner, all runs", "cumulative_ratio", true},
			{"one knob, all runs", "single_knob_cumulative_ratio", true},
			{"random, all runs", "random_cumulative_ratio", true},
		},
	}
}

func recognised() chart {
	return chart{
		title: "Precision against the share recognised, as the limit of the distance moves", x: "share recognised", y: "share",
		rows: listOf("thresholds"), at: "recognised",
		of: []line{{"precision", "precision", false}, {"programs left out that are called known", "unknown_called_known", false}},
	}
}

func forecasts() chart {
	return chart{
		title: "Error of the value at the end, geometric mean over the workloads", x: "share of the epochs seen", y: "median error (share of the true value)",
		rows: func(o object) []fields { return o.Rows }, at: "seen",
		of: []line{
			{"ensemble", "final_error_median", false},
			{"ensemble without earlier runs", "alone_error_median", false},
			{"last value", "last_value_error_median", false},
			{"best single model, in hindsight", "best_single_error_median", false},
		},
	}
}

func regrets() chart {
	return chart{
		title: "Regret of searches", x: "evaluations", y: "mean ln(found / best)", rows: listOf("means"), split: "data", names: []string{"method"}, at: "budget",
		of: []line{{key: "log_ratio_mean"}},
	}
}

func powers() chart {
	return chart{
		title: "Power against the size of the effect", x: "effect (share)", y: "share that finds it", rows: listOf("power"),
		names: []string{"comparison", "source"}, at: "effect", of: []line{{key: "power"}},
	}
}

func listOf(key string) func(object) []fields {
	return func(o object) []fields { return o.Summary.list(key) }
}
