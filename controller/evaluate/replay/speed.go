package replay

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// SpeedInput is what Speed measures.
type SpeedInput struct {
	evaluate.Set
	Outcome string // a column of the trials; a rate where its name ends in _per_second, else a cost
	Samples int    // settings that are measured of each workload, at least 1
}

// Speed measures a few settings of each workload, one after the other as the model asks
// for them, and compares its forecast of the others. There is no chance in it.
func Speed(ctx context.Context, in SpeedInput, progress evaluate.Progress) (evaluate.Report, error) {
	out := evaluate.Report{Command: "evaluate speed", Data: in.Files()}
	if err := evaluate.Want(in.Samples >= 1, "%d samples: want 1 or more", in.Samples); err != nil {
		return out, err
	}
	var left evaluate.LeftOut
	var all []*speeds
	for _, t := range in.Trials {
		found, err := speedsOf(t, in.Outcome, &left)
		if err != nil {
			return out, err
		}
		all = append(all, found...)
	}
	err := out.Fill(ctx, len(all), progress, func(_ context.Context, i int) (string, []evaluate.Line, error) {
		row, err := all[i].measure(in.Samples)
		return all[i].Name() + " on " + all[i].Machine, []evaluate.Line{row}, err
	})
	errs := evaluate.Column(out.Rows, "error_mean")
	_, worst := evaluate.Range(errs)
	least, _ := evaluate.Range(evaluate.Column(out.Rows, "attained"))
	out.Summary = evaluate.Line{
		"rows": len(out.Rows), "error_mean": evaluate.Mean(errs), "error_mean_max": worst, "attained_min": least, "left_out": []evaluate.Line(left),
	}
	return out, err
}

// speeds is what would be measured under each setting of one workload.
type speeds struct {
	evaluate.Group
	rate     bool // the outcome is one: more is better
	settings []tuning.Settings
	space    *Space
	truths   []evaluate.Figure // outcome by setting, mean over the repeats that ran; unknown: none did
}

// measure asks for settings until the samples are spent, and compares the rest.
func (w *speeds) measure(budget int) (evaluate.Line, error) {
	samples, failed := map[int]float64{}, 0
	for len(samples) < budget {
		i, ok := w.space.Next(samples, budget, w.score)
		if !ok {
			break
		}
		samples[i] = w.convert(i, float64(w.truths[i]))
		if !w.truths[i].Known() {
			samples[i], failed = math.Inf(1), failed+1
		}
	}
	row := w.Line().With(evaluate.Line{"settings": len(w.truths), "samples": len(samples), "failed": failed, "unseen": 0, "chosen": ""})
	if failed == len(samples) {
		return row, nil // nothing ran: there is nothing to compare
	}
	forecast, err := w.space.Forecast(samples)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.Name(), err)
	}
	var errs []float64
	best, score := math.Inf(-1), math.Inf(-1)
	for i, mean := range w.truths {
		truth := float64(mean)
		if !mean.Known() {
			continue
		}
		s := w.score(i, w.convert(i, truth))
		best = max(best, s)
		if _, measured := samples[i]; measured {
			if s > score {
				score, row["chosen"] = s, w.settings[i].String()
			}
			continue
		}
		off := 1.0
		if !math.IsInf(forecast[i], 1) {
			off = math.Abs(w.convert(i, forecast[i])-truth) / truth
		}
		errs = append(errs, off)
	}
	row["unseen"], row["error_mean"], row["attained"] = len(errs), evaluate.Mean(errs), evaluate.Figure(score/best)
	_, row["error_max"] = evaluate.Range(errs)
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

func (w *speeds) score(i int, seconds float64) float64 { return w.steps(i) / seconds }

// speedsOf splits a table, and lists the rows that it could not use: runs without word
// of whether they ran. A rate of 0 is a run that got nowhere: it failed.
func speedsOf(t evaluate.Table, outcome string, left *evaluate.LeftOut) (out []*speeds, err error) {
	if !t.Has(outcome) {
		return nil, evaluate.Invalid("%s: there is no column %q", t.File, outcome)
	}
	for _, g := range t.Jobs() {
		w := &speeds{Group: g, rate: strings.HasSuffix(outcome, "_per_second")}
		named := usualNames(g.Rows)
		rows := usable(g, left, func(r evaluate.Row) string {
			_, ok := r.Outcome(outcome)
			number, known := r.Float(outcome)
			switch {
			case numeric(r.Knobs) != named: // a model over features needs the same ones throughout
				return "its settings are not those that the other rows name: " + named
			case ok || r.Failed() || w.rate && known && number >= 0:
				return ""
			case known:
				return outcome + " is not above 0"
			}
			return outcome + " is missing"
		})
		if len(rows) == 0 {
			continue
		}
		for _, same := range evaluate.Split(rows, evaluate.Setting) {
			ran := tuning.Each(same, func(r evaluate.Row) float64 { v, _ := r.Outcome(outcome); return orNaN(v) })
			w.settings, w.truths = append(w.settings, same[0].Knobs), append(w.truths, evaluate.Mean(ran))
		}
		w.space = NewSpace(w.settings)
		out = append(out, w)
	}
	if len(out) == 0 {
		return nil, evaluate.Invalid("%s: no row has a %s above 0", t.File, outcome)
	}
	return out, nil
}

// numeric names the settings that are numbers, in one word.
func numeric(s tuning.Settings) string {
	names := slices.Sorted(maps.Keys(s))
	return strings.Join(evaluate.Only(names, func(name string) bool { return s[name].IsNumber() && name != "placement" }), " ")
}

// usualNames are the names that most rows have, of several the first.
func usualNames(rows []evaluate.Row) string {
	usual, _ := evaluate.Least(
		evaluate.Split(rows, func(r evaluate.Row) string { return numeric(r.Knobs) }),
		func(same []evaluate.Row) float64 { return -float64(len(same)) },
	)
	return numeric(usual[0].Knobs)
}
