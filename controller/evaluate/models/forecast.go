package models

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
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
	records.Set
	Seen    []float64 // shares of a run, above 0 and below 1
	Measure string    // one of Measures; empty: Auto
}

// ForecastRow is one workload on one machine, cut at one share. Errors are shares of the true
// value; a figure that there is none of is null.
type ForecastRow struct {
	Workload           string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine            string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Measure            string        `json:"measure" about:"loss or quality" col:"MEASURE"`
	Seen               result.Figure `json:"seen" about:"share of the epochs that the forecast knew" col:"SEEN"`
	Runs               int           `json:"runs" about:"runs that were cut, those without a forecast included" col:"RUNS"`
	FinalErrorMedian   result.Figure `json:"final_error_median" about:"median error of the value at the end" col:"ERROR|4"`
	AloneErrorMedian   result.Figure `json:"alone_error_median" about:"the same without learning from earlier runs" col:"ALONE|4"`
	LastErrorMedian    result.Figure `json:"last_value_error_median" about:"the same of forecasting that nothing changes any more" col:"LAST VALUE|4"`
	SingleErrorMedian  result.Figure `json:"best_single_error_median" about:"the same of the model that was best on this row, in hindsight" col:"BEST SINGLE|4"`
	Single             string        `json:"best_single" about:"the name of that model" col:"MODEL"`
	Targets            int           `json:"targets" about:"runs that have a target: the best value up to the middle of what was not seen, where it was not reached before the cut"`
	TargetErrorMedian  result.Figure `json:"target_error_median" about:"median error of the epoch at which a target is reached, as a share of the true epoch" col:"TARGET"`
	SecondsErrorMedian result.Figure `json:"target_seconds_error_median" about:"likewise of the seconds since the job began" col:"SECONDS"`
	Coverage           result.Figure `json:"interval80_coverage" about:"share of the final values within their interval of 80 %" col:"COVERED|2"`
	WidthMedian        result.Figure `json:"interval80_width_median" about:"median width of the interval, as a share of the true value"`
	UnknownShare       result.Figure `json:"unknown_share" about:"share of the runs of which nothing was forecast" col:"UNKNOWN|2"`
}

// ForecastSummary is over all rows.
type ForecastSummary struct {
	Rows        int           `json:"rows" about:"how many rows there are"`
	RatioMean   result.Figure `json:"final_error_ratio_mean" about:"geometric mean of the error over the better of last value and best single"`
	RatioMax    result.Figure `json:"final_error_ratio_max" about:"the same of the worst row"`
	Within      int           `json:"rows_within_1_02" about:"rows whose ratio is at most 1.02"`
	CoverageMin result.Figure `json:"interval80_coverage_min" about:"least coverage of a row of at least 100 runs"`
	CoverageMax result.Figure `json:"interval80_coverage_max" about:"greatest coverage of a row of at least 100 runs"`
}

// ForecastReport is the result of Forecast.
type ForecastReport = result.Report[ForecastRow, ForecastSummary]

const (
	manyRuns   = 100  // from how many runs on a share of them says something about coverage
	mostWithin = 1.02 // the ratio that counts as within
)

// Forecast cuts each run after a share of its epochs, forecasts it to its end, and compares
// that with what happened.
func Forecast(ctx context.Context, in ForecastInput, progress result.Progress) (ForecastReport, error) {
	in.Measure = cmp.Or(in.Measure, Auto)
	switch {
	case len(in.Curves) == 0:
		return ForecastReport{}, result.Invalid("no curves")
	case len(in.Seen) == 0 || slices.ContainsFunc(in.Seen, func(s float64) bool { return !(s > 0 && s < 1) }):
		return ForecastReport{}, result.Invalid("seen %v: want shares above 0 and below 1", in.Seen)
	case !slices.Contains(Measures(), in.Measure):
		return ForecastReport{}, result.Invalid("measure %q: want one of %v", in.Measure, Measures())
	}
	var families []family
	for _, t := range in.Curves {
		found, err := familiesOf(t, in.Measure)
		if err != nil {
			return ForecastReport{}, err
		}
		families = append(families, found...)
	}
	rows := make([][]ForecastRow, len(families))
	err := result.Each(ctx, len(families), progress, func(ctx context.Context, i int) (string, error) {
		var err error
		rows[i], err = families[i].measure(ctx, in.Seen, nil)
		return families[i].measured + " of " + families[i].Workload, err
	})
	if err != nil {
		return ForecastReport{}, fmt.Errorf("evaluate forecast: %w", err)
	}
	out := ForecastReport{Command: "evaluate forecast", Data: in.Files(), Rows: slices.Concat(rows...)}
	s := &out.Summary
	var ratios, covered []result.Figure
	for _, r := range out.Rows {
		ratio := r.FinalErrorMedian / min(r.LastErrorMedian, r.SingleErrorMedian) // over the better of both
		if ratio.Known() {
			ratios = append(ratios, max(ratio, 1e-9))
		}
		if ratio <= mostWithin {
			s.Within++
		}
		if r.Runs >= manyRuns {
			covered = append(covered, r.Coverage)
		}
	}
	s.Rows, s.RatioMean = len(out.Rows), result.GeometricOf(ratios)
	_, s.RatioMax = result.Range(ratios)
	s.CoverageMin, s.CoverageMax = result.Range(covered)
	return out, nil
}

// family is the runs of one workload on one machine, in one measure.
type family struct {
	records.Group
	measured string
	runs     []run
}

// run is one curve; epochs count from 1 at its first row.
type run struct {
	forecast.Curve
	seconds []float64 // empty where one is missing
}

func familiesOf(t records.Table, measure string) ([]family, error) {
	var out []family
	for _, g := range t.Groups() {
		loss, err := familyOf(t, g, Loss)
		if err != nil {
			return nil, err
		}
		quality, err := familyOf(t, g, Quality)
		if err != nil {
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
	if len(out) == 0 {
		return nil, result.Invalid("%s: no row has a value of the measure", t.File)
	}
	return out, nil
}

func familyOf(t records.Table, g records.Group, measure string) (family, error) {
	f := family{Group: g, measured: measure}
	for _, rows := range records.Runs(g.Rows) {
		var r run
		base, timed := 0.0, true
		for _, row := range rows {
			v, ok := row.Float(measure)
			if !ok {
				continue
			}
			epoch, ok := row.Float("epoch")
			if !ok {
				return family{}, result.Invalid("%s:%d: the epoch is missing", t.File, row.Line)
			}
			if len(r.Values) == 0 {
				base = epoch - 1
			}
			if k := len(r.Epochs); k > 0 && epoch-base <= r.Epochs[k-1] {
				return family{}, result.Invalid("%s:%d: epoch %g of run %s does not come after the one before", t.File, row.Line, epoch, row.Run)
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

// end is the last epoch.
func (r run) end() float64 { return r.Epochs[len(r.Epochs)-1] }

// better reports whether one value is better than another.
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

// How far beyond its end a run is searched for its target, as a multiple of its epochs,
// and by how much the steps there grow.
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
	for e, why := model.Value(epoch); why != forecast.Known || f.better(target, e.Value); e, why = model.Value(epoch) {
		if why != forecast.Known || epoch > beyond*end {
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
	pace := result.Median(paces)
	if !pace.Known() {
		pace = 0
	}
	return epoch, r.seconds[n-1] + max(float64(pace), 0)*(epoch-now)
}

// errorsOf are what one row sums up.
type errorsOf struct {
	final, alone, last, target, seconds, width []float64
	single                                     [forecast.Last][]float64 // by model
	inside                                     int
}

// measure makes a row for each share. The runs come one after the other, and what they
// teach is what the controller keeps of a job: see forecast.Teach. heard receives each
// forecast of an end; it may be nil.
func (f family) measure(ctx context.Context, shares []float64, heard func(run int, seen float64, end tuning.Estimate)) ([]ForecastRow, error) {
	rows, sums := make([]ForecastRow, len(shares)), make([]errorsOf, len(shares))
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
			rows[i].Runs++
			alone, why := forecast.New(cut, f.options(r))
			if why != forecast.Known {
				continue
			}
			end, ok := sums[i].add(f, r, len(cut.Values), alone, alone.Taught(lessons))
			if ok && heard != nil {
				heard(at, share, end)
			}
		}
		o := f.options(r)
		o.Lessons = lessons
		lessons = append(lessons, forecast.Teach(r.Curve, o)...)
	}
	for i := range rows {
		row, e := &rows[i], sums[i]
		row.Workload, row.Machine, row.Measure, row.Seen = f.Workload, f.Machine, f.measured, result.Figure(shares[i])
		if row.Runs > 0 {
			row.UnknownShare = 1 - result.Share(len(e.final), row.Runs)
		}
		row.FinalErrorMedian, row.AloneErrorMedian, row.LastErrorMedian = result.Median(e.final), result.Median(e.alone), result.Median(e.last)
		row.Targets, row.TargetErrorMedian, row.SecondsErrorMedian = len(e.target), result.Median(e.target), result.Median(e.seconds)
		row.WidthMedian, row.Coverage = result.Median(e.width), result.Share(e.inside, len(e.final))
		row.SingleErrorMedian = result.Unknown()
		for m, errs := range e.single {
			if v := result.Median(errs); v.Known() && !(v >= row.SingleErrorMedian) {
				row.SingleErrorMedian, row.Single = v, forecast.Model(m).String()
			}
		}
	}
	return rows, nil
}

// add compares the forecasts of one run with its truth. False: there was none of its end.
func (e *errorsOf) add(f family, r run, n int, alone, taught forecast.Forecast) (tuning.Estimate, bool) {
	truth := r.Values[len(r.Values)-1]
	off := func(v float64) float64 { return math.Abs(v-truth) / max(math.Abs(truth), math.SmallestNonzeroFloat64) }
	got, why := taught.Value(r.end())
	bare, _ := alone.Value(r.end())
	if why != forecast.Known {
		return tuning.Estimate{}, false
	}
	e.final, e.alone = append(e.final, off(got.Value)), append(e.alone, off(bare.Value))
	e.last, e.width = append(e.last, off(r.Values[n-1])), append(e.width, off(truth+got.High-got.Low))
	if got.Low <= truth && truth <= got.High {
		e.inside++
	}
	for m, v := range taught.Lesson(truth).Told[:forecast.Last] {
		e.single[m] = append(e.single[m], off(v))
	}
	if at, ok := f.target(r, n); ok {
		epoch, seconds := f.arrival(r, n, taught, r.Values[at])
		e.target = append(e.target, math.Abs(epoch-r.Epochs[at])/r.Epochs[at])
		if len(r.seconds) > 0 && r.seconds[at] > 0 {
			e.seconds = append(e.seconds, math.Abs(seconds-r.seconds[at])/r.seconds[at])
		}
	}
	return got, true
}
