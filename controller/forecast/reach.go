package forecast

import (
	"math"
)

// Span is when something happens, with an interval that holds the truth four times out
// of five.
type Span struct {
	Value float64  `json:"value"`
	Low   float64  `json:"low"`
	High  *float64 `json:"high,omitempty"` // nil: perhaps never
}

// Arrival is when a curve reaches a target.
type Arrival struct {
	Epoch   Span    `json:"epoch"`             // counted as the curve's epochs are
	Seconds *Span   `json:"seconds,omitempty"` // since the job began; nil: see Untimed
	Untimed Unknown `json:"untimed,omitempty"`
}

// How far beyond the job's end a target is looked for, as a multiple of its epochs, and
// by how much the steps there grow.
const (
	beyond = 10
	stride = 1.02
)

// Reach is when the curve first is at the target or better. Never: not as far as the
// forecast sees, which is ten times the job's epochs.
func (f *Forecast) Reach(target float64) (Arrival, Unknown) {
	if !finite(target) {
		return Arrival{}, NoNumbers
	}
	want := f.u.in(target)
	for i, v := range f.curve.Values {
		if f.u.in(v) <= want {
			e := f.curve.Epochs[i]
			a := Arrival{Epoch: Span{Value: e, Low: e, High: &e}, Untimed: NotTimed}
			if len(f.curve.Seconds) > 0 {
				s := f.curve.Seconds[i]
				a.Seconds, a.Untimed = &Span{Value: s, Low: s, High: &s}, Known
			}
			return a, Known
		}
	}
	var low, mid, high *float64
	limit, change := f.sight()
	for k := f.now + 1; k <= limit && high == nil; k = max(k+1, k*f.stride(k)) {
		l, v, h := f.band(k)
		e := k + f.start
		for _, end := range []struct {
			z  float64
			at **float64
		}{{l, &low}, {v, &mid}, {h, &high}} {
			if *end.at == nil && end.z <= want {
				*end.at = &e
			}
		}
	}
	switch {
	case mid == nil && change:
		return Arrival{}, ChangeAhead
	case mid == nil:
		return Arrival{}, Never
	}
	a := Arrival{Epoch: Span{Value: *mid, Low: *low, High: high}}
	a.Seconds, a.Untimed = f.seconds(a.Epoch)
	return a, Known
}

// stride is 1 up to the job's end: there every epoch is looked at.
func (f *Forecast) stride(k float64) float64 {
	if k < f.end {
		return 1
	}
	return stride
}

// sight is the last epoch (of the piece) that is looked at, and whether a change of the
// learning rate ends it.
func (f *Forecast) sight() (limit float64, change bool) {
	limit = beyond * f.options.Total
	for _, c := range f.options.Changes {
		if c > f.now+f.start && c-1 < limit {
			limit, change = c-1, true
		}
	}
	return limit - f.start, change
}

// seconds says when epochs to come end, by the pace of the newest third of the epochs:
// the first ones load and warm up.
func (f *Forecast) seconds(epochs Span) (*Span, Unknown) {
	n := len(f.curve.Seconds)
	if n < 2 {
		return nil, NotTimed
	}
	paces := make([]float64, 0, n)
	for i := max(1, n-max(n/3, 3)); i < n; i++ {
		paces = append(paces, (f.curve.Seconds[i]-f.curve.Seconds[i-1])/(f.curve.Epochs[i]-f.curve.Epochs[i-1]))
	}
	pace := median(paces)
	apart := (quantile(paces, 1-tail) - quantile(paces, tail)) / 2 / math.Sqrt(float64(len(paces)))
	at := func(epoch, pace float64) float64 {
		return f.curve.Seconds[n-1] + max(pace, 0)*(epoch-f.curve.Epochs[n-1])
	}
	out := Span{Value: at(epochs.Value, pace), Low: at(epochs.Low, pace-apart)}
	if epochs.High != nil {
		high := at(*epochs.High, pace+apart)
		out.High = &high
	}
	return &out, Known
}
