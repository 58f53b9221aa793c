package speed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/speed"
	"pitchpipe/controller/tuning"
)

// ErrInput marks choices that cannot be evaluated.
var ErrInput = errors.New("invalid input")

// Input is what to measure and on what.
type Input struct {
	Tables  []records.Table // of trials
	Outcome string          // a column; a rate where its name ends in _per_second, else a cost
	Samples int             // settings that are measured of each workload, at least 1
}

// Row is one workload on one machine.
type Row struct {
	Workload  string   `json:"workload"`
	Machine   string   `json:"machine"`
	Input     string   `json:"input,omitempty"` // of the workload, where the data tell inputs apart
	Settings  int      `json:"settings"`        // different ones, failed ones included
	Samples   int      `json:"samples"`         // measured, at most as many as asked for
	Failed    int      `json:"failed"`          // of the samples
	Unseen    int      `json:"unseen"`          // settings that the errors are over
	ErrorMean *float64 `json:"error_mean"`      // of the outcome, as a share of the true one
	ErrorMax  *float64 `json:"error_max"`
	Attained  *float64 `json:"attained"` // the outcome of the chosen setting over the best, 1 at most
	Chosen    string   `json:"chosen"`
}

// Summary is over all rows.
type Summary struct {
	Rows        int      `json:"rows"`
	ErrorMean   *float64 `json:"error_mean"` // mean of the rows
	ErrorMax    *float64 `json:"error_mean_max"`
	AttainedMin *float64 `json:"attained_min"`

	LeftOut []evaluate.LeftOut `json:"left_out"` // rows that could not be used
}

// Report is what Run found.
type Report = evaluate.Report[Row, Summary]

// Run measures every workload.
func Run(ctx context.Context, in Input, progress evaluate.Progress) (Report, error) {
	switch {
	case len(in.Tables) == 0:
		return Report{}, fmt.Errorf("%w: no trials", ErrInput)
	case in.Samples < 1:
		return Report{}, fmt.Errorf("%w: %d samples: want 1 or more", ErrInput, in.Samples)
	case in.Outcome == "":
		return Report{}, fmt.Errorf("%w: no outcome", ErrInput)
	}
	if progress == nil {
		progress = evaluate.Quiet
	}
	report := Report{Command: "evaluate speed"}
	var worlds []world
	left := []evaluate.LeftOut{}
	for _, t := range in.Tables {
		report.Data = append(report.Data, t.File)
		found, lost, err := worldsOf(t, in.Outcome)
		if err != nil {
			return Report{}, err
		}
		worlds, left = append(worlds, found...), append(left, lost...)
	}
	for i, w := range worlds {
		if err := ctx.Err(); err != nil {
			return Report{}, fmt.Errorf("evaluate speed: %w", err)
		}
		progress(i, len(worlds), w.name())
		row, err := w.measure(in.Samples)
		if err != nil {
			return Report{}, err
		}
		report.Rows = append(report.Rows, row)
	}
	progress(len(worlds), len(worlds), "workloads")
	report.Summary = sum(report.Rows)
	report.Summary.LeftOut = left
	return report, nil
}

func sum(rows []Row) Summary {
	s := Summary{Rows: len(rows)}
	var errs, most []float64
	for _, r := range rows {
		if r.ErrorMean != nil {
			errs = append(errs, *r.ErrorMean)
		}
		if r.Attained != nil {
			most = append(most, -*r.Attained)
		}
	}
	s.ErrorMean, s.ErrorMax = meanAndMax(errs)
	if _, worst := meanAndMax(most); worst != nil {
		s.AttainedMin = new(-*worst)
	}
	return s
}

func meanAndMax(x []float64) (mean, most *float64) {
	if len(x) == 0 {
		return nil, nil
	}
	sum, top := 0.0, math.Inf(-1)
	for _, v := range x {
		sum, top = sum+v, max(top, v)
	}
	return new(sum / float64(len(x))), &top
}

// world is what would be measured under each setting of one workload with one input on
// one machine.
type world struct {
	workload, machine, input, file string

	rate     bool // the outcome is one: more is better
	settings []tuning.Settings
	space    *speed.Space
	truths   []float64 // outcome by setting of the space, mean over the repeats that ran; 0: none did
}

func (w world) name() string {
	return records.Group{Workload: w.workload, Input: w.input}.Name() + " on " + w.machine
}

// measure asks for settings until the samples are spent, and compares the rest.
func (w world) measure(budget int) (Row, error) {
	row := Row{Workload: w.workload, Machine: w.machine, Input: w.input, Settings: len(w.truths)}
	var samples []speed.Sample
	taken := map[int]bool{}
	for len(samples) < budget {
		i, ok := w.space.Next(samples, budget, w.score)
		if !ok {
			break
		}
		taken[i] = true
		sample := speed.Sample{At: i, Failed: w.truths[i] == 0}
		if sample.Failed {
			row.Failed++
		} else {
			sample.Seconds = w.seconds(i, w.truths[i])
		}
		samples = append(samples, sample)
	}
	row.Samples = len(samples)
	forecast, err := w.space.Forecast(samples)
	if errors.Is(err, speed.ErrSamples) && row.Failed == row.Samples {
		return row, nil // nothing ran: there is nothing to compare
	}
	if err != nil {
		return Row{}, fmt.Errorf("%s: %s: %w", w.file, w.name(), err)
	}
	w.compare(&row, forecast, taken)
	return row, nil
}

func (w world) compare(row *Row, forecast []speed.Estimate, taken map[int]bool) {
	var errs []float64
	best, chosen, score := math.Inf(-1), -1, math.Inf(-1)
	for i, truth := range w.truths {
		if truth == 0 {
			continue
		}
		seconds := w.seconds(i, truth)
		best = max(best, w.score(i, seconds))
		if taken[i] {
			if s := w.score(i, seconds); s > score {
				chosen, score = i, s
			}
			continue
		}
		off := 1.0
		if e := forecast[i]; !e.Fails {
			off = math.Abs(w.outcome(i, e.Seconds)-truth) / truth
		}
		errs = append(errs, off)
	}
	row.Unseen = len(errs)
	row.ErrorMean, row.ErrorMax = meanAndMax(errs)
	if chosen >= 0 {
		row.Attained = new(score / best)
		row.Chosen = w.settings[chosen].String()
	}
}

// steps is how much of the outcome one step is: samples in a batch where the outcome is
// a rate and the settings say the batch.
func (w world) steps(i int) float64 {
	if v, ok := w.settings[i]["batch_size"]; ok && w.rate && v.IsNumber() && v.Float() > 0 {
		return v.Float()
	}
	return 1
}

func (w world) seconds(i int, outcome float64) float64 {
	if w.rate {
		return w.steps(i) / outcome
	}
	return outcome
}

func (w world) outcome(i int, seconds float64) float64 {
	if w.rate {
		return w.steps(i) / seconds
	}
	return seconds
}

// score is what is to be large.
func (w world) score(i int, seconds float64) float64 {
	return w.steps(i) / seconds
}

// worldsOf splits a table, and tells which rows it could not use: runs of which nobody
// knows whether they ran. A rate of 0 is a run that got nowhere: it failed.
func worldsOf(t records.Table, outcome string) ([]world, []evaluate.LeftOut, error) {
	if !t.Has(outcome) {
		return nil, nil, fmt.Errorf("%w: %s: there is no column %q", ErrInput, t.File, outcome)
	}
	var out []world
	var left []evaluate.LeftOut
	for _, g := range t.Jobs() {
		w := world{
			workload: g.Workload, machine: g.Machine, input: g.Input, file: t.File, rate: strings.HasSuffix(outcome, "_per_second"),
		}
		named := usual(g.Rows)
		var settings []tuning.Settings
		sums, counts := map[string]float64{}, map[string]float64{}
		for _, r := range g.Rows {
			key := r.Knobs.Key()
			leave := func(why string) {
				left = evaluate.Leave(left, evaluate.LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Rows: 1, Line: r.Line, Why: why})
			}
			if names(r.Knobs) != named {
				leave("its settings are not those that the other rows name: " + named)
				continue
			}
			told, known := r.Float(outcome)
			v, ran := r.Outcome(outcome)
			if !ran && !r.Failed() && (!known || !w.rate || told < 0) {
				why := outcome + " is missing"
				if known {
					why = outcome + " is not above 0"
				}
				leave(why)
				continue
			}
			if _, known := counts[key]; !known {
				settings = append(settings, r.Knobs)
				counts[key] = 0
			}
			if ran {
				sums[key], counts[key] = sums[key]+v, counts[key]+1
			}
		}
		if len(settings) == 0 {
			continue
		}
		w.settings, w.space = settings, speed.NewSpace(settings)
		for _, s := range settings {
			w.truths = append(w.truths, sums[s.Key()]/max(counts[s.Key()], 1))
		}
		out = append(out, w)
	}
	if len(out) == 0 {
		return nil, nil, fmt.Errorf("%w: %s: no row has a %s above 0", ErrInput, t.File, outcome)
	}
	return out, left, nil
}

// names are those of the settings that are numbers, in one word. A model over features needs
// the same ones throughout.
func names(s tuning.Settings) string {
	var out []string
	for name, v := range s {
		if v.IsNumber() && name != "placement" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// usual are the names that most rows have, of several the first.
func usual(rows []records.Row) string {
	count := map[string]int{}
	for _, r := range rows {
		count[names(r.Knobs)]++
	}
	best := names(rows[0].Knobs)
	for _, r := range rows {
		if n := names(r.Knobs); count[n] > count[best] {
			best = n
		}
	}
	return best
}
