package forecast

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	mind "pitchpipe/controller/forecast"
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

// ErrInput marks choices that cannot be evaluated.
var ErrInput = errors.New("invalid input")

// Input is what to measure and on what.
type Input struct {
	Tables  []records.Table // of curves or adaptations
	Seen    []float64       // shares of a run, above 0 and below 1
	Measure string          // one of Measures; empty is Auto
}

// Row is one workload on one machine, cut at one share. Errors are shares of the true
// value; a figure that there is none of is null.
type Row struct {
	Workload string  `json:"workload"`
	Machine  string  `json:"machine"`
	Measure  string  `json:"measure"` // loss or quality
	Seen     float64 `json:"seen"`    // share of the epochs that the forecast knew
	Runs     int     `json:"runs"`    // that were cut, those without a forecast included

	FinalErrorMedian  *float64 `json:"final_error_median"` // of the value at the end
	AloneErrorMedian  *float64 `json:"alone_error_median"` // the same without learning from earlier runs
	LastErrorMedian   *float64 `json:"last_value_error_median"`
	SingleErrorMedian *float64 `json:"best_single_error_median"` // of the model that was best on this row, in hindsight
	Single            string   `json:"best_single"`              // its name

	// The target of a run is the best value that it reaches up to the middle of what was
	// not seen; a run whose target was reached before the cut has none. An arrival that
	// is not forecast counts as an error beyond all others.
	Targets            int      `json:"targets"`
	TargetErrorMedian  *float64 `json:"target_error_median"`         // of the epoch, as a share of the true epoch
	SecondsErrorMedian *float64 `json:"target_seconds_error_median"` // of the seconds since the job began

	Coverage     *float64 `json:"interval80_coverage"`
	WidthMedian  *float64 `json:"interval80_width_median"` // as a share of the true value
	UnknownShare float64  `json:"unknown_share"`
}

// Ratio is the error over the better of the last value and the best single model.
func (r Row) Ratio() (float64, bool) {
	if r.FinalErrorMedian == nil || r.LastErrorMedian == nil || r.SingleErrorMedian == nil {
		return 0, false
	}
	best := min(*r.LastErrorMedian, *r.SingleErrorMedian)
	return *r.FinalErrorMedian / best, best > 0
}

// Summary is over all rows.
type Summary struct {
	Rows        int      `json:"rows"`
	RatioMean   *float64 `json:"final_error_ratio_mean"`  // geometric mean of the error over the better of last value and best single
	RatioMax    *float64 `json:"final_error_ratio_max"`   // the worst row
	Within      int      `json:"rows_within_1_02"`        // rows whose ratio is at most 1.02
	CoverageMin *float64 `json:"interval80_coverage_min"` // over rows of at least 100 runs
	CoverageMax *float64 `json:"interval80_coverage_max"`
}

// Report is what Run found.
type Report = evaluate.Report[Row, Summary]

// manyRuns is from how many runs on a share of them says something about coverage.
const manyRuns = 100

// most is the ratio that counts as within.
const most = 1.02

// Run measures every workload at every share.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	if err := in.check(); err != nil {
		return Report{}, err
	}
	if progress == nil {
		progress = evaluate.Quiet
	}
	report := Report{Command: "evaluate forecast"}
	var families []family
	for _, t := range in.Tables {
		report.Data = append(report.Data, t.File)
		found, err := familiesOf(t, in.Measure)
		if err != nil {
			return Report{}, err
		}
		families = append(families, found...)
	}
	for i, f := range families {
		progress(i, len(families), fmt.Sprintf("%s of %s", f.name, f.workload))
		rows, err := f.measure(ctx, in.Seen, nil)
		if err != nil {
			return Report{}, fmt.Errorf("evaluate forecast: %w", err)
		}
		report.Rows = append(report.Rows, rows...)
	}
	progress(len(families), len(families), "curves")
	report.Summary = sum(report.Rows)
	return report, nil
}

func (in Input) check() error {
	if len(in.Tables) == 0 {
		return fmt.Errorf("%w: no curves", ErrInput)
	}
	if len(in.Seen) == 0 {
		return fmt.Errorf("%w: no share that was seen", ErrInput)
	}
	for _, s := range in.Seen {
		if !(s > 0 && s < 1) {
			return fmt.Errorf("%w: seen %g: want a share above 0 and below 1", ErrInput, s)
		}
	}
	if in.Measure != "" && !slices.Contains(Measures(), in.Measure) {
		return fmt.Errorf("%w: measure %q: want one of %v", ErrInput, in.Measure, Measures())
	}
	return nil
}

func sum(rows []Row) Summary {
	s := Summary{Rows: len(rows)}
	var logs float64
	var n int
	for _, r := range rows {
		if ratio, ok := r.Ratio(); ok {
			n++
			logs += math.Log(max(ratio, 1e-9))
			s.RatioMax = larger(s.RatioMax, ratio)
			if ratio <= most {
				s.Within++
			}
		}
		if r.Coverage != nil && r.Runs >= manyRuns {
			s.CoverageMax = larger(s.CoverageMax, *r.Coverage)
			if s.CoverageMin == nil || *r.Coverage < *s.CoverageMin {
				s.CoverageMin = r.Coverage
			}
		}
	}
	if n > 0 {
		s.RatioMean = new(math.Exp(logs / float64(n)))
	}
	return s
}

func larger(a *float64, b float64) *float64 {
	if a != nil && *a >= b {
		return a
	}
	return &b
}

// errorsOf are what one row sums up.
type errorsOf struct {
	final, alone, last, target, seconds, width []float64
	single                                     [][]float64 // by model
	inside, known                              int
}

// measure makes a row for each share. The runs come one after the other, and what they
// teach is what the controller keeps of a job: see forecast.Teach. heard receives each
// forecast of an end; it may be nil.
func (f family) measure(ctx context.Context, shares []float64, heard func(run int, seen float64, end tuning.Estimate)) ([]Row, error) {
	rows, sums := make([]Row, len(shares)), make([]errorsOf, len(shares))
	for i, share := range shares {
		rows[i] = Row{Workload: f.workload, Machine: f.machine, Measure: f.name, Seen: share}
		sums[i].single = make([][]float64, mind.Last+1)
	}
	var lessons []mind.Lesson
	for at, r := range f.runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for i, share := range shares {
			cut, ok := r.curve().Seen(share)
			if !ok {
				continue
			}
			rows[i].Runs++
			alone, why := mind.New(cut, f.options(r))
			if why != mind.Known {
				continue
			}
			end, ok := sums[i].add(r, len(cut.Values), alone, alone.Taught(lessons))
			if ok && heard != nil {
				heard(at, share, end)
			}
		}
		o := f.options(r)
		o.Lessons = lessons
		lessons = append(lessons, mind.Teach(r.curve(), o)...)
	}
	for i := range rows {
		sums[i].fill(&rows[i])
	}
	return rows, nil
}

// add compares the forecasts of one run with its truth. False: there was none of its end.
func (e *errorsOf) add(r run, n int, alone, taught mind.Forecast) (tuning.Estimate, bool) {
	end, truth := r.epochs[len(r.epochs)-1], r.values[len(r.values)-1]
	off := func(v float64) float64 { return math.Abs(v-truth) / max(math.Abs(truth), math.SmallestNonzeroFloat64) }
	got, why := taught.Value(end)
	bare, _ := alone.Value(end)
	if why != mind.Known {
		return tuning.Estimate{}, false
	}
	e.known++
	e.final = append(e.final, off(got.Value))
	e.alone = append(e.alone, off(bare.Value))
	e.last = append(e.last, off(r.values[n-1]))
	e.width = append(e.width, off(truth+got.High-got.Low))
	if got.Low <= truth && truth <= got.High {
		e.inside++
	}
	for m, told := range taught.Lesson(truth).Told[:mind.Last] {
		e.single[m] = append(e.single[m], off(told))
	}
	e.reach(r, n, taught)
	return got, true
}

// reach compares when the run reaches its target with when the forecast does.
func (e *errorsOf) reach(r run, n int, f mind.Forecast) {
	at, ok := r.target(n)
	if !ok {
		return
	}
	epoch, seconds := r.arrival(n, f, r.values[at])
	e.target = append(e.target, math.Abs(epoch-r.epochs[at])/r.epochs[at])
	if len(r.seconds) > 0 && r.seconds[at] > 0 {
		e.seconds = append(e.seconds, math.Abs(seconds-r.seconds[at])/r.seconds[at])
	}
}

func (e *errorsOf) fill(row *Row) {
	if row.Runs > 0 {
		row.UnknownShare = 1 - float64(e.known)/float64(row.Runs)
	}
	row.FinalErrorMedian, row.AloneErrorMedian, row.LastErrorMedian = median(e.final), median(e.alone), median(e.last)
	row.Targets, row.TargetErrorMedian, row.SecondsErrorMedian = len(e.target), median(e.target), median(e.seconds)
	row.WidthMedian = median(e.width)
	if e.known > 0 {
		row.Coverage = new(float64(e.inside) / float64(e.known))
	}
	for m, errs := range e.single {
		if v := median(errs); v != nil && (row.SingleErrorMedian == nil || *v < *row.SingleErrorMedian) {
			row.SingleErrorMedian, row.Single = v, mind.Model(m).String()
		}
	}
}

// median is nil where there is nothing, or nothing finite in the middle.
func median(x []float64) *float64 {
	if len(x) == 0 {
		return nil
	}
	s := slices.Sorted(slices.Values(x))
	v := (s[(len(s)-1)/2] + s[len(s)/2]) / 2
	if math.IsInf(v, 0) {
		return nil
	}
	return &v
}
