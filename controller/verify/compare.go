package verify

import (
	"cmp"
	"math"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
)

// Compare judges tuned against untuned. In this order:
//
//  1. quality fell by more than its owner allows: regressed, quality-lost;
//  2. the interval of the time ratio lies wholly above max_slowdown: regressed,
//     slower-than-allowed;
//  3. nothing could be compared, or only by modelled joules that the site does
//     not let support a claim, or by those of a part of the nodes: inconclusive,
//     with what is missing;
//  4. the interval of the objective's log ratio lies wholly within the margin:
//     neutral; wholly below 0: improved; wholly above 0: regressed; else
//     inconclusive.
//
// The claims of 2 and 4 share the error where they are made by different
// measures, so that the level holds for the verdict as a whole. A quality guard is a
// precaution, not a claim: it acts on the numbers as they are.
func Compare(in Input) tuning.Outcome {
	in.Objective = cmp.Or(in.Objective, tuning.DefaultObjective)
	in.Level = cmp.Or(in.Level, DefaultLevel)
	out := tuning.Outcome{
		Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive,
		Measure: in.Objective, Level: in.Level, Baseline: in.Baseline, Tuned: in.Tuned, At: in.At,
	}

	m, both := in.measure()
	out.Source = m.source
	out.NoEnergy = in.Priced() && m.Tariff != in.Tariff
	alpha := (1 - in.Level) / float64(max(in.Candidates, 1))
	if in.MaxSlowdown > 0 && (m.NeedsJoules() || m.Priced()) {
		alpha /= 2
	}

	e := none()
	if both {
		e = in.estimate(m, alpha)
	}
	out.LogRatio, out.Low, out.High, out.Pairs = e.value, e.low(), e.high(), e.n

	if in.qualityLost() {
		out.Verdict, out.Reason = tuning.Regressed, tuning.ReasonQualityLost
		return out
	}
	if in.MaxSlowdown > 0 {
		pace := measure{Measure: tuning.Measure{Objective: tuning.Time}, uncharged: true}
		t := in.estimate(pace, alpha)
		if t.n > 0 && t.low() > math.Log(in.MaxSlowdown) {
			out.Verdict, out.Reason = tuning.Regressed, tuning.ReasonSlower
			return out
		}
	}

	margin := math.Log1p(Margin)
	switch {
	case e.n == 0:
		out.Reason = in.why()
	case tuning.IsModelled(m.source) && !in.EnforceModelled:
		out.Reason = tuning.ReasonModelled
	case tuning.IsPart(m.source):
		out.Reason = tuning.ReasonPartial
	case out.Low >= -margin && out.High <= margin:
		out.Verdict, out.Reason = tuning.Neutral, tuning.ReasonNeutral
	case out.High < 0:
		out.Verdict, out.Reason = tuning.Improved, tuning.ReasonImproved
	case out.Low > 0:
		out.Verdict, out.Reason = tuning.Regressed, tuning.ReasonRegressed
	}
	return out
}

// measure says what the objective compares by; false: by joules that are not on
// both sides. In a price energy is free where they are not.
func (in Input) measure() (measure, bool) {
	m := measure{Measure: in.Measure}
	if m.NeedsJoules() || m.Priced() && m.Tariff.KWh > 0 {
		m.source = in.source()
	}
	if m.Priced() && (m.source == "" || !m.Tariff.Charges(m.source)) {
		m.Measure, m.source = m.WithoutEnergy(), ""
	}
	return m, m.source != "" || !in.NeedsJoules()
}

// lastEpochs is how many epochs a quality is taken over.
const lastEpochs = 3

// qualityLost reports whether the result got worse by more than the guard allows,
// as a share of the untuned quality.
//
// Between jobs it compares at equal epochs: the mean loss over the last epochs
// that both did, averaged over the pairs. Within one job the median quality of
// the last tuned epochs is held against that of the last untuned ones, once there
// are enough of both. Warm-up and pollution do not change what an epoch learned, so such
// epochs count here.
func (in Input) qualityLost() bool {
	if in.Quality == nil {
		return false
	}
	if len(in.Pairs) == 0 {
		before, after := qualities(in.Before), qualities(in.After)
		if len(before) < lastEpochs || len(after) < lastEpochs {
			return false
		}
		return in.loss(tuning.Median(tail(before)), tuning.Median(tail(after))) > in.Quality.MaxLoss
	}
	var means []float64
	for _, p := range in.Pairs {
		var losses []float64
		for t, u := range matching(p) {
			if t.Quality != nil && u.Quality != nil {
				losses = append(losses, in.loss(*u.Quality, *t.Quality))
			}
		}
		if len(losses) > 0 {
			means = append(means, stat.Mean(tail(losses), nil))
		}
	}
	return len(means) > 0 && stat.Mean(means, nil) > in.Quality.MaxLoss
}

// loss is how much worse the tuned quality is, as a share of the untuned.
func (in Input) loss(untuned, tuned float64) float64 {
	worse := untuned - tuned
	if in.Quality.Direction == "min" {
		worse = -worse
	}
	return worse / max(math.Abs(untuned), 1e-12)
}

func qualities(epochs []tuning.Epoch) []float64 {
	var out []float64
	for _, e := range epochs {
		if e.Quality != nil {
			out = append(out, *e.Quality)
		}
	}
	return out
}

func tail(xs []float64) []float64 { return xs[max(0, len(xs)-lastEpochs):] }
