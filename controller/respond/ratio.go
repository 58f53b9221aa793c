package respond

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Ratio is a log ratio to the owner's settings: its mean and standard deviation.
type Ratio struct{ Mean, SD float64 }

// Quantile is the value that a standard normal quantile z stands for.
func (r Ratio) Quantile(z float64) float64 { return r.Mean + z*r.SD }

// Below is how likely it is less than a bound.
func (r Ratio) Below(bound float64) float64 {
	switch {
	case r.SD > 0:
		return distuv.UnitNormal.CDF((bound - r.Mean) / r.SD)
	case r.Mean <= bound:
		return 1
	}
	return 0
}

// Saved is the expected share that it saves where it does: that of 1-exp(r) above 0.
func (r Ratio) Saved() float64 {
	if !(r.SD > 0) {
		return max(-math.Expm1(r.Mean), 0)
	}
	n := distuv.UnitNormal
	return max(n.CDF(-r.Mean/r.SD)-math.Exp(r.Mean+r.SD*r.SD/2)*n.CDF(-r.Mean/r.SD-r.SD), 0)
}

func (r Ratio) plus(o Ratio) Ratio { return Ratio{r.Mean + o.Mean, math.Hypot(r.SD, o.SD)} }

type moments struct{ sum, squares float64 }

func (m *moments) add(w, v float64) {
	m.sum += w * v
	m.squares += w * v * v
}

func (m *moments) ratio(weight, sd float64) Ratio {
	if !(weight > 0) {
		return Ratio{0, 1}
	}
	mean := m.sum / weight
	return Ratio{mean, math.Sqrt(max(m.squares/weight-mean*mean, 0) + sd*sd)}
}

// seen joins a prediction with a measurement. The further both are apart beyond their errors, the
// less the prediction counts: then no law fits.
func seen(predicted, measured Ratio) Ratio {
	apart := predicted.Mean - measured.Mean
	unexplained := apart*apart - predicted.SD*predicted.SD - measured.SD*measured.SD
	predicted.SD = math.Hypot(predicted.SD, math.Sqrt(max(unexplained, 0)))
	return join(predicted, measured)
}

// join is the product of two independent statements about one ratio.
func join(a, b Ratio) Ratio {
	if !(a.SD > 0) {
		return a
	}
	wa, wb := 1/(a.SD*a.SD), 1/(b.SD*b.SD)
	return Ratio{(wa*a.Mean + wb*b.Mean) / (wa + wb), math.Sqrt(1 / (wa + wb))}
}
