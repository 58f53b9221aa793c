package forecast

import (
	"fmt"
	"math"

	"pitchpipe/controller/evaluate/records"
	mind "pitchpipe/controller/forecast"
)

// family is the runs of one workload on one machine, in one measure.
type family struct {
	workload, machine, name string
	runs                    []run
}

// run is one curve; epochs count from 1 at its first row.
type run struct {
	epochs, values []float64
	seconds        []float64 // empty where one is missing
	better         func(a, b float64) bool
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
		hasLoss, hasQuality := len(loss.runs) > 0, len(quality.runs) > 0
		if hasLoss && measure != Quality {
			out = append(out, loss)
		}
		if hasQuality && (measure == Quality || measure == Both || !hasLoss && measure != Loss) {
			out = append(out, quality)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s: no row has a value of the measure", ErrInput, t.File)
	}
	return out, nil
}

func familyOf(t records.Table, g records.Group, name string) (family, error) {
	f := family{workload: g.Workload, machine: g.Machine, name: name}
	for _, rows := range records.Runs(g.Rows) {
		r := run{better: func(a, b float64) bool { return a < b }}
		if name == Quality {
			r.better = func(a, b float64) bool { return a > b }
		}
		var base float64
		timed := true
		for _, row := range rows {
			v, ok := row.Float(name)
			if !ok {
				continue
			}
			epoch, ok := row.Float("epoch")
			if !ok {
				return family{}, fmt.Errorf("%w: %s:%d: the epoch is missing", ErrInput, t.File, row.Line)
			}
			if len(r.values) == 0 {
				base = epoch - 1
			}
			if k := len(r.epochs); k > 0 && epoch-base <= r.epochs[k-1] {
				return family{}, fmt.Errorf("%w: %s:%d: epoch %g of run %s does not come after the one before", ErrInput, t.File, row.Line, epoch, row.Run)
			}
			r.epochs, r.values = append(r.epochs, epoch-base), append(r.values, v)
			s, ok := row.Float("seconds")
			r.seconds, timed = append(r.seconds, s), timed && ok
		}
		if !timed {
			r.seconds = nil
		}
		if len(r.values) > 1 {
			f.runs = append(f.runs, r)
		}
	}
	return f, nil
}

// options is what the controller knows about a run: it says when it ends.
func (f family) options(r run) mind.Options {
	o := mind.Options{Direction: mind.Min, Total: r.epochs[len(r.epochs)-1]}
	if f.name == Quality {
		o.Direction = mind.Max
	}
	o.Best = mind.Bound(o.Direction)
	return o
}

func (r run) curve() mind.Curve {
	return mind.Curve{Epochs: r.epochs, Values: r.values}
}

// target is the index of the best value between the cut and the middle of the rest.
// False: it is no better than what was seen.
func (r run) target(n int) (int, bool) {
	best, at := r.values[0], -1
	for i, v := range r.values[:n+(len(r.values)-n+1)/2] {
		if r.better(v, best) {
			best, at = v, i
		}
	}
	return at, at >= n
}

// How far beyond its end a run is looked at for its target, as a multiple of its epochs,
// and by how much the steps there grow.
const (
	beyond = 10
	stride = 1.02
)

// arrival is the epoch in which a forecast made after n values first is at a target that
// these did not reach, and the seconds since the job began: later epochs have the pace of
// the newest third of those seen, since the first ones load and warm up. Both are infinite
// where the forecast does not come there.
func (r run) arrival(n int, f mind.Forecast, target float64) (epoch, seconds float64) {
	now, end := r.epochs[n-1], r.epochs[len(r.epochs)-1]
	epoch = now + 1
	for e, why := f.Value(epoch); why != mind.Known || r.better(target, e.Value); e, why = f.Value(epoch) {
		if why != mind.Known || epoch > beyond*end {
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
		paces = append(paces, (r.seconds[i]-r.seconds[i-1])/(r.epochs[i]-r.epochs[i-1]))
	}
	pace := 0.0
	if p := median(paces); p != nil {
		pace = max(*p, 0)
	}
	return epoch, r.seconds[n-1] + pace*(epoch-now)
}
