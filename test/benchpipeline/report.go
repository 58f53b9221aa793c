package benchpipeline

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/measure"
)

// Report is what the searches took.
type Report struct {
	Machine measure.Machine
	options Options
	notes   []string
	rows    []row
}

// busy is the load of the minute before the first search.
func busy(m measure.Machine) float64 {
	var minute float64
	if _, err := fmt.Sscan(m.Load, &minute); err != nil {
		return 0
	}
	return minute
}

// aim is a ratio of tuning seconds that the project asks for.
type aim struct {
	of, to string
	most   float64
}

func aims() []aim {
	m := modes()
	return []aim{{m[2].name, m[0].name, 0.75}, {m[2].name, m[1].name, 0.80}, {m[4].name, m[0].name, 0.60}, {m[3].name, m[0].name, 0}}
}

// ratio is a geometric mean with its 95 % interval.
type ratio struct {
	mean, low, high float64
	n               int
}

// compare pairs the searches of one mode with those of another, by kind and repetition.
func (r Report) compare(of, to string, value func(row) float64) ratio {
	var logs []float64
	for _, a := range r.rows {
		for _, b := range r.rows {
			if x := value(a) / value(b); a.mode == of && b.mode == to && a.kind == b.kind && a.repeat == b.repeat && x > 0 && !math.IsInf(x, 0) {
				logs = append(logs, math.Log(x))
			}
		}
	}
	out := ratio{mean: float64(evaluate.Geometric(logs)), high: math.Inf(1), n: len(logs)}
	if low, high := evaluate.Interval(logs); low.Known() {
		out.low, out.high = math.Exp(float64(low)), math.Exp(float64(high))
	}
	return out
}

func (x ratio) String() string {
	if x.n == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f, n=%d)", x.mean, x.low, x.high, x.n)
}

func seconds(x row) float64 { return x.seconds }
func joules(x row) float64  { return x.joules }

// Print writes the tables.
func (r Report) Print(w io.Writer) error {
	say := func(to io.Writer, format string, args ...any) { _, _ = fmt.Fprintf(to, format, args...) } // Flush has the error
	say(w, "%s\n", r.Machine.Heading())
	say(w, "ASHA, %d trials of up to %d epochs, 2 at a time, %d repetitions, equal seeds\n", r.options.Trials, r.options.Epochs, r.options.Repeats)
	for _, note := range r.notes {
		say(w, "%s\n", note)
	}
	if load := busy(r.Machine); load > 0.5 {
		say(w, "Other work kept %.0f threads waiting or running: it disturbs the epochs, and from disturbed epochs the tuner learns nothing.\n", load)
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	say(t, "\nKIND\tMODE\tTUNING SECONDS\tJOULES\tBEST QUALITY\tTUNED\tFAILED\n")
	for _, k := range kinds() {
		for _, m := range modes() {
			if of := r.of(k.name, m.name); len(of) > 0 {
				energy := "not measured"
				if of[0].source != "" {
					energy = spread(of, joules, "%.0f") + " " + of[0].source
				}
				say(t, "%s\t%s\t%s\t%s\t%s\t%.1f\t%.1f\n", k.name, m.name, spread(of, seconds, "%.1f"), energy,
					spread(of, func(x row) float64 { return x.quality }, "%.4f"),
					mean(of, func(x row) float64 { return float64(x.tuned) }), mean(of, func(x row) float64 { return float64(x.failed) }))
			}
		}
	}
	say(t, "\nRATIO\tSECONDS (95 %% INTERVAL)\tAIM\t\tJOULES\tQUALITY LOST\n")
	for _, a := range aims() {
		x := r.compare(a.of, a.to, seconds)
		verdict, most := "", ""
		if a.most > 0 {
			verdict, most = "missed", fmt.Sprintf("<= %.2f", a.most)
			if x.mean <= a.most {
				verdict = "met"
			}
		}
		lost := -math.Log(r.compare(a.of, a.to, func(x row) float64 { return x.quality }).mean)
		say(t, "%s to %s\t%s\t%s\t%s\t%s\t%.1f %%\n", a.of, a.to, x, most, verdict, r.compare(a.of, a.to, joules), 100*lost)
	}
	return t.Flush()
}

func (r Report) of(kind, mode string) (out []row) {
	for _, x := range r.rows {
		if x.kind == kind && x.mode == mode {
			out = append(out, x)
		}
	}
	return out
}

func mean(rows []row, value func(row) float64) float64 {
	return float64(evaluate.Mean(tuning.Each(rows, value)))
}

// spread is a mean, and the standard deviation between repetitions where there are some.
func spread(rows []row, value func(row) float64, format string) string {
	out := fmt.Sprintf(format, mean(rows, value))
	if len(rows) > 1 {
		out += " ± " + fmt.Sprintf(format, stat.StdDev(tuning.Each(rows, value), nil))
	}
	return out
}
