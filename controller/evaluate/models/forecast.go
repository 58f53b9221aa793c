package models

import (
	"cmp"
	"context"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/forecast"
	"pitchpipe/controller/tuning"
)

// The measures that a curve may be of.
const (
	Loss    = "loss"
	Quality = "quality"
	Auto    = "auto" // the loss where the workload has one, else the quality
	Both    = "both"
)

// Measures lists the choices of a measure.
func Measures() []string { return []string{Auto, Loss, Quality, Both} }

// ForecastInput is what Forecast measures.
type ForecastInput struct {
	evaluate.Set
	Seen    []float64 // shares of a run, above 0 and below 1
	Measure string    // one of Measures; empty: Auto
}

const (
	manyRuns   = 100  // from how many runs on a share of them says something about coverage
	mostWithin = 1.02 // the ratio that counts as within
)

// Forecast cuts each run after a share of its epochs, forecasts it to its end, and compares
// that with what happened.
func Forecast(ctx context.Context, in ForecastInput, progress evaluate.Progress) (evaluate.Report, error) {
	in.Measure = cmp.Or(in.Measure, Auto)
	out := evaluate.Report{Command: "evaluate forecast", Data: in.Files()}
	err := cmp.Or(
		evaluate.Want(len(in.Curves) > 0, "no curves"),
		evaluate.Want(len(in.Seen) > 0 && !slices.ContainsFunc(in.Seen, func(s float64) bool { return !(s > 0 && s < 1) }), "seen %v: want shares above 0 and below 1", in.Seen),
		evaluate.Want(slices.Contains(Measures(), in.Measure), "measure %q: want one of %v", in.Measure, Measures()),
	)
	if err != nil {
		return out, err
	}
	var families []family
	for _, t := range in.Curves {
		found, err := familiesOf(t, in.Measure)
		if err != nil {
			return out, err
		}
		families = append(families, found...)
	}
	err = out.Fill(ctx, len(families), progress, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		rows, err := families[i].measure(ctx, in.Seen, nil)
		return families[i].measured + " of " + families[i].Workload, rows, err
	})
	var ratios, covered []evaluate.Figure
	within := 0
	for _, r := range out.Rows {
		ratio := r.Figure("final_error_median") / min(r.Figure("last_value_error_median"), r.Figure("best_single_error_median")) // over the better of both
		if ratio.Known() {
			ratios = append(ratios, max(ratio, 1e-9))
		}
		if ratio <= mostWithin {
			within++
		}
		if r.Figure("runs") >= manyRuns {
			covered = append(covered, r.Figure("interval80_coverage"))
		}
	}
	_, worst := evaluate.Range(ratios)
	least, most := evaluate.Range(covered)
	out.Summary = evaluate.Line{
		"rows": len(out.Rows), "final_error_ratio_mean": evaluate.GeometricOf(ratios), "final_error_ratio_max": worst, "rows_within_1_02": within,
		"interval80_coverage_min": least, "interval80_coverage_max": most,
	}
	return out, err
}

// family is the runs of one workload on one machine, in one measure.
type family struct {
	evaluate.Group
	measured string
	runs     []run
}

// run is one curve; epochs count from 1 at its first row.
type run struct {
	forecast.Curve
	seconds []float64 // empty where one is missing
}

func familiesOf(t evaluate.Table, measure string) ([]family, error) {
	var out []family
	for _, g := range t.Groups() {
		loss, err := familyOf(g, Loss)
		quality, failed := familyOf(g, Quality)
		if err := cmp.Or(err, failed); err != nil {
			return nil, err
		}
		hasLoss := len(loss.runs) > 0
		if hasLoss && measure != Quality {
			out = append(out, loss)
		}
		if len(quality.runs) > 0 && (measure == Quality || measure == Both || !hasLoss && measure != Loss) {
			out = append(out, quality)
		}
	}
	return out, evaluate.Want(len(out) > 0, "%s: no row has a value of the measure", t.File)
}

func familyOf(g evaluate.Group, measure string) (family, error) {
	f := family{Group: g, measured: measure}
	for _, rows := range evaluate.Runs(g.Rows) {
		var r run
		base, timed := 0.0, true
		for _, row := range rows {
			v, ok := row.Float(measure)
			if !ok {
				continue
			}
			epoch, ok := row.Float("epoch")
			if !ok {
				return family{}, evaluate.Invalid("%s:%d: the epoch is missing", g.File, row.Line)
			}
			if len(r.Values) == 0 {
				base = epoch - 1
			}
			if k := len(r.Epochs); k > 0 && epoch-base <= r.Epochs[k-1] {
				return family{}, evaluate.Invalid("%s:%d: epoch %g of run %s does not come after the one before", g.File, row.Line, epoch, row.Run)
			}
			r.Epochs, r.Values = append(r.Epochs, epoch-base), append(r.Values, v)
			s, ok := row.Float("seconds")
			r.seconds, timed = append(r.seconds, s), timed && ok
		}
		if !timed {
			r.seconds = nil
		}
		if len(r.Values) > 1 {
			f.runs = append(f.runs, r)
		}
	}
	return f, nil
}

// options are what the controller knows about a run: it says when it ends.
func (f family) options(r run) forecast.Options {
	o := forecast.Options{Direction: forecast.Min, Total: r.end()}
	if f.measured == Quality {
		o.Direction = forecast.Max
	}
	o.Best = forecast.Bound(o.Direction)
	return o
}

func (r run) end() float64 { return r.Epochs[len(r.Epochs)-1] }

func (f family) better(a, b float64) bool {
	if f.measured == Quality {
		return a > b
	}
	return a < b
}

// target is the index of the best value between the cut and the middle of the rest.
// False: it is no better than what was seen.
func (f family) target(r run, n int) (int, bool) {
	best, at := r.Values[0], -1
	for i, v := range r.Values[:n+(len(r.Values)-n+1)/2] {
		if f.better(v, best) {
			best, at = v, i
		}
	}
	return at, at >= n
}

// How far beyond its end a run is searched for its target, as a multiple of its epochs, and
// how much the steps there grow.
const (
	beyond = 10
	stride = 1.02
)

// arrival is the epoch in which a forecast made after n values first is at a target that
// these did not reach, and the seconds since the job began: later epochs have the pace of
// the newest third of those seen, since the first ones load and warm up. Both are infinite
// where the forecast does not come there.
func (f family) arrival(r run, n int, model forecast.Forecast, target float64) (epoch, seconds float64) {
	now, end := r.Epochs[n-1], r.end()
	epoch = now + 1
	for e, known := model.Value(epoch); !known || f.better(target, e.Value); e, known = model.Value(epoch) {
		if !known || epoch > beyond*end {
			return math.Inf(1), math.Inf(1)
		}
		step := 1.0
		if epoch >= end {
			step = stride
		}
		epoch = max(epoch+1, epoch*step)
	}
	if len(r.seconds) == 0 {
		return epoch, math.Inf(1)
	}
	var paces []float64
	for i := max(1, n-max(n/3, 3)); i < n; i++ {
		paces = append(paces, (r.seconds[i]-r.seconds[i-1])/(r.Epochs[i]-r.Epochs[i-1]))
	}
	pace := evaluate.Median(paces)
	if !pace.Known() {
		pace = 0
	}
	return epoch, r.seconds[n-1] + max(float64(pace), 0)*(epoch-now)
}

// measure makes a row for each share. The runs come one after the other, and what they
// teach is what the controller keeps of a job: see forecast.Teach. heard receives each
// forecast of an end; it may be nil.
func (f family) measure(ctx context.Context, shares []float64, heard func(run int, seen float64, end tuning.Estimate)) ([]evaluate.Line, error) {
	found := make([][]evaluate.Line, len(shares)) // by share, of each run; empty: no forecast was made
	var lessons []forecast.Lesson
	for at, r := range f.runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, share := range shares {
			cut, ok := r.Seen(share)
			if !ok {
				continue
			}
			one, end := f.compare(r, cut, lessons)
			found[i] = append(found[i], one)
			if one != nil && heard != nil {
				heard(at, share, end)
			}
		}
		o := f.options(r)
		o.Lessons = lessons
		lessons = append(lessons, forecast.Teach(r.Curve, o)...)
	}
	return tuning.Each(evaluate.Indices(shares), func(i int) evaluate.Line { return f.row(shares[i], found[i]) }), nil
}

// row has the medians over runs, whose lines have the same keys.
func (f family) row(share float64, all []evaluate.Line) evaluate.Line {
	each := func(key string) []evaluate.Figure {
		return slices.DeleteFunc(evaluate.Column(all, key), func(v evaluate.Figure) bool { return math.IsNaN(float64(v)) })
	}
	out := f.Line().With(evaluate.Line{
		"measure": f.measured, "seen": evaluate.Figure(share), "runs": len(all), "targets": len(each("target_error_median")),
		"interval80_coverage": evaluate.Mean(each("interval80_coverage")), "unknown_share": evaluate.Figure(0),
	})
	if len(all) > 0 {
		out["unknown_share"] = 1 - evaluate.Share(len(each("interval80_coverage")), len(all))
	}
	for _, key := range []string{
		"final_error_median", "alone_error_median", "last_value_error_median", "target_error_median", "target_seconds_error_median", "interval80_width_median",
	} {
		out[key] = evaluate.Median(each(key))
	}
	for m := range forecast.Last {
		if v := evaluate.Median(each(m.String())); v.Known() && !(v >= out.Figure("best_single_error_median")) {
			out["best_single_error_median"], out["best_single"] = v, m.String()
		}
	}
	return out
}

// compare compares the forecasts of one run with its truth: errors by key of the row, and by
// name of a model alone. Nil: no forecast of its end was made.
func (f family) compare(r run, cut forecast.Curve, lessons []forecast.Lesson) (evaluate.Line, tuning.Estimate) {
	n, truth := len(cut.Values), r.Values[len(r.Values)-1]
	off := func(v float64) evaluate.Figure {
		return evaluate.Figure(math.Abs(v-truth) / max(math.Abs(truth), math.SmallestNonzeroFloat64))
	}
	alone, known := forecast.New(cut, f.options(r))
	if !known {
		return nil, tuning.Estimate{}
	}
	taught := alone.Taught(lessons)
	end, known := taught.Value(r.end())
	if !known {
		return nil, end
	}
	bare, _ := alone.Value(r.end())
	out := evaluate.Line{
		"final_error_median": off(end.Value), "alone_error_median": off(bare.Value), "last_value_error_median": off(r.Values[n-1]),
		"interval80_width_median": off(truth + end.High - end.Low), "interval80_coverage": evaluate.Yes(end.Low <= truth && truth <= end.High),
	}
	for m, v := range taught.Lesson(truth).Told[:forecast.Last] {
		out[forecast.Model(m).String()] = off(v)
	}
	if at, ok := f.target(r, n); ok {
		epoch, seconds := f.arrival(r, n, taught, r.Values[at])
		out["target_error_median"] = evaluate.Figure(math.Abs(epoch-r.Epochs[at]) / r.Epochs[at])
		if len(r.seconds) > 0 && r.seconds[at] > 0 {
			out["target_seconds_error_median"] = evaluate.Figure(math.Abs(seconds-r.seconds[at]) / r.seconds[at])
		}
	}
	return out, end
}
