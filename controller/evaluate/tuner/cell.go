package tuner

import (
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// cell is one point: its repeats, in the order in which they stand.
type cell struct {
	epoch   tuning.Spent   // of one epoch, or of the whole run where there are no epochs: the mean over those that ran; NaN: not told
	repeats []float64      // epochs to the end; +Inf: never reached, or failed
	runs    []tuning.Spent // of each repeat, where there are no epochs; nil: every repeat is like epoch
	failed  bool           // no repeat ran at all
	all     []repeat
}

// repeat is one row.
type repeat struct {
	epoch  tuning.Spent // NaN: not told
	epochs float64      // to the end; +Inf: never reached, or failed
	failed bool
}

// repeatOf reads one row. Without a column of epochs a run counts as one. The words say
// why a row cannot be used: it ran, and nobody knows for how long.
func repeatOf(r records.Row, counted bool) (repeat, string) {
	value := func(column string) float64 {
		if v, ok := r.Float(column); ok && v > 0 {
			return v
		}
		return math.NaN()
	}
	one := repeat{epoch: tuning.Spent{Seconds: value("seconds"), Joules: value("joules")}, epochs: 1, failed: r.Failed()}
	if counted {
		n, told := r.Float("epochs")
		switch {
		case !told:
			one.epochs = math.Inf(1)
		case !(n > 0):
			return repeat{}, "its epochs are not above 0"
		default:
			one.epochs = n
		}
		one.epoch = tuning.Spent{Seconds: value("epoch_seconds")}
		if math.IsNaN(one.epoch.Seconds) {
			one.epoch.Seconds = value("seconds") / one.epochs
		}
		one.epoch.Joules = one.epoch.Seconds * value("watts")
		if math.IsNaN(one.epoch.Joules) {
			one.epoch.Joules = value("joules") / one.epochs
		}
	}
	if v, ok := r.Float("samples_per_second"); ok && v > 0 && math.IsNaN(one.epoch.Seconds) {
		one.epoch.Seconds = 1 / v // of one sample
	}
	if math.IsNaN(one.epoch.Seconds) && !counted {
		one.epoch.Seconds = value("epoch_seconds")
	}
	if math.IsNaN(one.epoch.Joules) {
		one.epoch.Joules = one.epoch.Seconds * value("watts")
	}
	if one.failed {
		one.epochs = math.Inf(1)
	}
	if !(one.epoch.Seconds > 0) && !math.IsInf(one.epochs, 1) {
		return repeat{}, "it tells no time: want seconds, epoch_seconds or samples_per_second above 0"
	}
	return one, ""
}

func (c *cell) join(one repeat) { c.all = append(c.all, one) }

// close works out what the repeats say together.
func (c *cell) close(counted bool) {
	c.failed = !slices.ContainsFunc(c.all, func(r repeat) bool { return !r.failed })
	ran := slices.DeleteFunc(slices.Clone(c.all), func(r repeat) bool { return r.failed && !c.failed })
	c.epoch = tuning.Spent{
		Seconds: mean(ran, func(r repeat) float64 { return r.epoch.Seconds }),
		Joules:  mean(ran, func(r repeat) float64 { return r.epoch.Joules }),
	}
	for _, r := range c.all {
		c.repeats = append(c.repeats, r.epochs)
		if !counted {
			c.runs = append(c.runs, tuning.Spent{Seconds: orElse(r.epoch.Seconds, c.epoch.Seconds), Joules: orElse(r.epoch.Joules, c.epoch.Joules)})
		}
	}
	c.all = nil
}

// mean is that of the numbers that are told, NaN where none is.
func mean(all []repeat, of func(repeat) float64) float64 {
	sum, n := 0.0, 0.0
	for _, r := range all {
		if v := of(r); v > 0 && !math.IsInf(v, 1) {
			sum, n = sum+v, n+1
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / n
}

func orElse(v, other float64) float64 {
	if v > 0 && !math.IsInf(v, 1) {
		return v
	}
	return other
}

// reaches tells whether any repeat came to its end.
func (c cell) reaches() bool {
	return slices.ContainsFunc(c.repeats, func(n float64) bool { return !math.IsInf(n, 1) })
}

// lacks names what a goal needs of a cost and is not told; empty: it tells all.
func lacks(g recur.Goal, c tuning.Spent) string {
	switch {
	case !(c.Seconds > 0):
		return "seconds"
	case g.Attain == 0 && g.MaxJoules > 0 && !(c.Joules > 0), !g.Least() && !isFinite(g.Score(c, 1)):
		return "joules"
	}
	return ""
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
