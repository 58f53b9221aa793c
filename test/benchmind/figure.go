package benchmind

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"pitchpipe/controller/report/picture"
)

// chart says what of an evaluation is drawn.
type chart struct {
	title, x, y string
	notes       []string
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
	notes       []string
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
			f = &figure{name: part, title: c.title, x: c.x, y: c.y, notes: c.notes, lines: map[string]map[float64][]float64{}}
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

// draw writes the figure into the folder.
func (f figure) draw(folder string) error {
	colours := []picture.Colour{
		picture.Black, picture.Blue, picture.Orange, picture.Green, picture.Red, picture.Purple, picture.Sky, picture.Grey,
	}
	sheet := picture.Sheet{Title: f.title, Notes: f.notes, Plot: picture.New(f.x, f.y)}
	for i, name := range slices.Sorted(maps.Keys(f.lines)) {
		var at plotter.XYs
		for _, x := range slices.Sorted(maps.Keys(f.lines[name])) {
			at = append(at, plotter.XY{X: x, Y: mean(f.lines[name][x])})
		}
		colour := colours[i%len(colours)]
		var dashes []vg.Length
		if i >= len(colours) { // they begin again
			dashes = []vg.Length{4, 2}
		}
		if f.labels == nil { // rows have no order that a line could show
			sheet.Plot.Add(picture.Line(at, colour, 1.5, dashes...))
		}
		sheet.Add(name, picture.Dots(at, colour, 2, draw.CircleGlyph{}))
	}
	if f.labels != nil {
		sheet.Plot.NominalX(f.labels...)
		sheet.Plot.X.Tick.Label.Rotation = math.Pi / 4
		sheet.Plot.X.Tick.Label.XAlign, sheet.Plot.X.Tick.Label.YAlign = draw.XRight, draw.YCenter
	}
	picture.Pad(&sheet.Plot.Y)
	file, err := os.Create(filepath.Join(folder, f.name+".svg")) //nolint:gosec // a report that others may read
	if err != nil {
		return err
	}
	if err := errors.Join(sheet.Write(file, picture.SVG), file.Close()); err != nil {
		return fmt.Errorf("plot %s: %w", f.name, err)
	}
	return nil
}

// savings are shares of the owner's cost that are saved.
func savings(of string) chart {
	return chart{
		title: "Saving of " + of + ", relative to the owner's settings", y: "saving (share; below -0.5 is drawn there)",
		notes: []string{"Left out: where the oracle saves under 1 %. A policy that breaks a limit may save more than the oracle."},
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
