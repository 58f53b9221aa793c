package replay

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/controller/tuning"
)

// SpeedInput is what Speed measures.
type SpeedInput struct {
	records.Set
	Outcome string // a column of the trials; a rate where its name ends in _per_second, else a cost
	Samples int    // settings that are measured of each workload, at least 1
}

// SpeedRow is one workload on one machine.
type SpeedRow struct {
	Workload  string        `json:"workload" about:"name, as in the data" col:"WORKLOAD"`
	Machine   string        `json:"machine" about:"name, as in the data" col:"MACHINE"`
	Input     string        `json:"input,omitempty" about:"which input of the workload, where the data tell inputs apart" col:"INPUT"`
	Settings  int           `json:"settings" about:"how many different settings, failed ones included" col:"SETTINGS"`
	Samples   int           `json:"samples" about:"settings measured, at most as many as asked for" col:"SAMPLES"`
	Failed    int           `json:"failed" about:"how many of the samples failed" col:"FAILED"`
	Unseen    int           `json:"unseen" about:"settings that the errors are over" col:"UNSEEN"`
	ErrorMean result.Figure `json:"error_mean" about:"mean error of the outcome of unseen settings, as a share of the true one" col:"ERROR"`
	ErrorMax  result.Figure `json:"error_max" about:"greatest error of an unseen setting" col:"WORST|2"`
	Attained  result.Figure `json:"attained" about:"the outcome of the chosen setting over the best, 1 at most" col:"ATTAINED"`
	Chosen    string        `json:"chosen" about:"the best setting measured" col:"CHOSEN"`
}

// SpeedSummary is over all rows.
type SpeedSummary struct {
	Rows        int              `json:"rows" about:"how many rows there are"`
	ErrorMean   result.Figure    `json:"error_mean" about:"mean of the rows"`
	ErrorMax    result.Figure    `json:"error_mean_max" about:"greatest error_mean of a row"`
	AttainedMin result.Figure    `json:"attained_min" about:"least attained of a row"`
	LeftOut     []result.LeftOut `json:"left_out" about:"rows that could not be used"`
}

// SpeedReport is the result of Speed.
type SpeedReport = result.Report[SpeedRow, SpeedSummary]

// Speed measures a few settings of each workload, one after the other as the model asks
// for them, and compares its forecast of the others. There is no chance in it.
func Speed(ctx context.Context, in SpeedInput, progress result.Progress) (SpeedReport, error) {
	switch {
	case len(in.Trials) == 0:
		return SpeedReport{}, result.Invalid("no trials")
	case in.Samples < 1:
		return SpeedReport{}, result.Invalid("%d samples: want 1 or more", in.Samples)
	}
	out := SpeedReport{Command: "evaluate speed", Data: in.Files(), Summary: SpeedSummary{LeftOut: []result.LeftOut{}}}
	var all []*speeds
	for _, t := range in.Trials {
		found, left, err := speedsOf(t, in.Outcome)
		if err != nil {
			return SpeedReport{}, err
		}
		all, out.Summary.LeftOut = append(all, found...), append(out.Summary.LeftOut, left...)
	}
	out.Rows = make([]SpeedRow, len(all))
	err := result.Each(ctx, len(all), progress, func(_ context.Context, i int) (string, error) {
		var err error
		out.Rows[i], err = all[i].measure(in.Samples)
		return all[i].Name() + " on " + all[i].Machine, err
	})
	if err != nil {
		return SpeedReport{}, fmt.Errorf("evaluate speed: %w", err)
	}
	var errs, attained []result.Figure
	for _, r := range out.Rows {
		errs, attained = append(errs, r.ErrorMean), append(attained, r.Attained)
	}
	s := &out.Summary
	s.Rows, s.ErrorMean = len(out.Rows), result.Mean(errs)
	_, s.ErrorMax = result.Range(errs)
	s.AttainedMin, _ = result.Range(attained)
	return out, nil
}

// speeds is what would be measured under each setting of one workload.
type speeds struct {
	records.Group
	rate     bool // the outcome is one: more is better
	settings []tuning.Settings
	space    *Space
	truths   []float64 // outcome by setting, mean over the repeats that ran; 0: none did
}

// measure asks for settings until the samples are spent, and compares the rest.
func (w *speeds) measure(budget int) (SpeedRow, error) {
	row := SpeedRow{
		Workload: w.Workload, Machine: w.Machine, Input: w.Input, Settings: len(w.truths),
		ErrorMean: result.Unknown(), ErrorMax: result.Unknown(), Attained: result.Unknown(),
	}
	var samples []Sample
	taken := map[int]bool{}
	for len(samples) < budget {
		i, ok := w.space.Next(samples, budget, w.score)
		if !ok {
			break
		}
		taken[i] = true
		sample := Sample{At: i, Failed: w.truths[i] == 0}
		if sample.Failed {
			row.Failed++
		} else {
			sample.Seconds = w.convert(i, w.truths[i])
		}
		samples = append(samples, sample)
	}
	row.Samples = len(samples)
	forecast, err := w.space.Forecast(samples)
	if errors.Is(err, ErrSamples) && row.Failed == row.Samples {
		return row, nil // nothing ran: there is nothing to compare
	}
	if err != nil {
		return SpeedRow{}, fmt.Errorf("%s: %w", w.Name(), err)
	}
	var errs []float64
	best, score := math.Inf(-1), math.Inf(-1)
	for i, truth := range w.truths {
		if truth == 0 {
			continue
		}
		s := w.score(i, w.convert(i, truth))
		best = max(best, s)
		if taken[i] {
			if s > score {
				score, row.Chosen = s, w.settings[i].String()
			}
			continue
		}
		off := 1.0
		if e := forecast[i]; !e.Fails {
			off = math.Abs(w.convert(i, e.Seconds)-truth) / truth
		}
		errs = append(errs, off)
	}
	row.Unseen, row.ErrorMean, row.Attained = len(errs), result.Mean(errs), result.Figure(score/best)
	_, row.ErrorMax = result.Range(errs)
	return row, nil
}

// steps is how much of the outcome one step is: samples in a batch where the outcome is
// a rate and the settings have a batch.
func (w *speeds) steps(i int) float64 {
	if v, ok := w.settings[i]["batch_size"]; ok && w.rate && v.IsNumber() && v.Float() > 0 {
		return v.Float()
	}
	return 1
}

// convert makes seconds of a step out of an outcome, and the other way round.
func (w *speeds) convert(i int, v float64) float64 {
	if w.rate {
		return w.steps(i) / v
	}
	return v
}

// score is what is to be large.
func (w *speeds) score(i int, seconds float64) float64 { return w.steps(i) / seconds }

// speedsOf splits a table, and lists the rows that it could not use: runs of which it is
// unknown whether they ran. A rate of 0 is a run that got nowhere: it failed.
func speedsOf(t records.Table, outcome string) (out []*speeds, left []result.LeftOut, err error) {
	if !t.Has(outcome) {
		return nil, nil, result.Invalid("%s: there is no column %q", t.File, outcome)
	}
	for _, g := range t.Jobs() {
		w := &speeds{Group: g, rate: strings.HasSuffix(outcome, "_per_second")}
		named := usualNames(g.Rows)
		rows := slices.DeleteFunc(slices.Clone(g.Rows), func(r records.Row) bool {
			_, ok := r.Outcome(outcome)
			number, known := r.Float(outcome)
			why := ""
			switch {
			case numeric(r.Knobs) != named: // a model over features needs the same ones throughout
				why = "its settings are not those that the other rows name: " + named
			case ok || r.Failed() || w.rate && known && number >= 0:
			case known:
				why = outcome + " is not above 0"
			default:
				why = outcome + " is missing"
			}
			if why != "" {
				left = result.Leave(left, result.LeftOut{Data: t.File, Workload: g.Name(), Machine: g.Machine, Rows: 1, Line: r.Line, Why: why})
			}
			return why != ""
		})
		if len(rows) == 0 {
			continue
		}
		for _, same := range records.Split(rows, records.Setting) {
			var ran []float64
			for _, r := range same {
				if v, ok := r.Outcome(outcome); ok {
					ran = append(ran, v)
				}
			}
			truth := 0.0 // all failed
			if len(ran) > 0 {
				truth = float64(result.Mean(ran))
			}
			w.settings, w.truths = append(w.settings, same[0].Knobs), append(w.truths, truth)
		}
		w.space = NewSpace(w.settings)
		out = append(out, w)
	}
	if len(out) == 0 {
		return nil, nil, result.Invalid("%s: no row has a %s above 0", t.File, outcome)
	}
	return out, left, nil
}

// numeric names the settings that are numbers, in one word.
func numeric(s tuning.Settings) string {
	var out []string
	for name, v := range s {
		if v.IsNumber() && name != "placement" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// usualNames are the names that most rows have, of several the first.
func usualNames(rows []records.Row) string {
	count := map[string]int{}
	for _, r := range rows {
		count[numeric(r.Knobs)]++
	}
	best := numeric(rows[0].Knobs)
	for _, r := range rows {
		if n := numeric(r.Knobs); count[n] > count[best] {
			best = n
		}
	}
	return best
}
