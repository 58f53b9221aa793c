package replay

import (
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/searcher/preview"
	"pitchpipe/controller/tuning"
)

func withoutOutcome(t evaluate.Table) error {
	if !t.Has("quality") && !t.Has("loss") {
		return evaluate.Invalid("%s:1:1: no column quality or loss", t.File)
	}
	return nil
}

// readCurves reads the runs of a workload, and says why it cannot be searched. What counts
// is the error of the quality where a row has one, else the loss. Runs without seconds are
// left out where others have some.
func (p *problem) readCurves(_ evaluate.Format, leave func(rows []evaluate.Row, why string)) string {
	has := func(column string) bool {
		return slices.ContainsFunc(p.Rows, func(r evaluate.Row) bool { _, ok := r.Float(column); return ok })
	}
	column := "loss"
	whole, known := evaluate.Whole(p.Rows)
	if has("quality") && (known || !has("loss")) {
		if column = "quality"; !known {
			return unknownWhole
		}
	}
	lossAt := func(r evaluate.Row) (float64, bool) {
		v, ok := r.Float(column)
		if column == "quality" {
			v = 1 - v/whole
		}
		return v, ok
	}
	runs := evaluate.Runs(p.Rows)
	p.begin = math.Inf(-1)
	for i := range runs {
		runs[i] = evaluate.InOrder(runs[i])
		for _, r := range runs[i] {
			if v, ok := lossAt(r); ok {
				p.begin = max(p.begin, v)
				break
			}
		}
	}
	p.cadence = evaluate.Cadence(runs, column)
	timed := slices.ContainsFunc(runs, func(run []evaluate.Row) bool { _, why := secondsOf(run); return why == "" })
	var totals, bests []float64
	for _, run := range runs {
		seconds, why := secondsOf(run)
		if why != "" && timed {
			leave(run, why)
			continue
		}
		last, broke := evaluate.Last(run, column, p.cadence)
		var curve []preview.Epoch
		least := math.Inf(1)
		total, loss := 0.0, p.begin
		for i, r := range run {
			if v, ok := lossAt(r); ok {
				loss = v // else it has that of the epoch before
			}
			e := preview.Epoch{Value: loss}
			if seconds != nil {
				e.Seconds = seconds[i]
			}
			least = min(least, loss)
			total += e.Seconds
			if broke && i > last {
				e.Value = math.NaN()
			}
			if curve = append(curve, e); math.IsNaN(e.Value) {
				break
			}
		}
		if v, ok := run[len(curve)-1].Float("seconds"); ok {
			total = v
		}
		bests = append(bests, least)
		p.settings, p.curves, p.full = append(p.settings, run[0].Knobs), append(p.curves, curve), max(p.full, len(curve))
		totals = append(totals, total)
	}
	ends := tuning.Each(p.curves, func(c []preview.Epoch) float64 { return c[len(c)-1].Value })
	ended := slices.DeleteFunc(slices.Clone(ends), math.IsNaN)
	if len(ended) == 0 {
		return "no run ends with an outcome"
	}
	slices.Sort(bests)
	p.optimum, p.threshold = bests[0], bests[len(bests)/20]
	if timed {
		slices.Sort(totals)
		p.median = totals[len(totals)/2]
	}
	p.worst = max(0, slices.Max(ended))
	p.truth = tuning.Each(ends, func(loss float64) float64 { // broken runs end with the worst
		if math.IsNaN(loss) {
			loss = p.worst
		}
		return math.Log(max(loss, leastLoss))
	})
	if len(p.curves) == 1 {
		return "it has a single run"
	}
	return ""
}

// secondsOf are those of each epoch of a run in order. Where some are missing, the time
// between is shared among the epochs, and the last of them take as long as those before.
// The words say why they are unknown.
func secondsOf(run []evaluate.Row) ([]float64, string) {
	out := make([]float64, len(run))
	before, from := 0.0, 0
	for i, r := range run {
		now, ok := r.Float("seconds")
		if !ok {
			continue
		}
		if now < before {
			return nil, fmt.Sprintf("%g seconds after %g: want seconds since the start of a run, which never fall", now, before)
		}
		for j := from; j <= i; j++ {
			out[j] = (now - before) / float64(i+1-from)
		}
		before, from = now, i+1
	}
	if from == 0 || before == 0 {
		return nil, "no seconds"
	}
	for j := from; j < len(run); j++ {
		out[j] = before / float64(from)
	}
	return out, ""
}
