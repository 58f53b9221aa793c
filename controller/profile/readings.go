package profile

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/api"
)

// readings are the samples of a window as one line per column.
type readings struct {
	samples []api.Sample // by time
	start   time.Time    // of the attempt; zero = unknown
	zero    time.Time    // where the seconds below count from
	whole   bool         // the ring forgot nothing
	lines   map[string]line
}

// line is a column: values at times, both in order.
type line struct{ at, value []float64 }

func read(w api.Window) *readings {
	r := &readings{samples: slices.Clone(w.Samples), start: w.Job.Started, whole: w.Dropped == 0, lines: map[string]line{}}
	slices.SortStableFunc(r.samples, func(a, b api.Sample) int { return a.Time.Compare(b.Time) })
	if len(r.samples) > 0 {
		r.zero = r.samples[0].Time
	}
	return r
}

func (r *readings) seconds(t time.Time) float64 { return t.Sub(r.zero).Seconds() }

// counter is a column that only grows, from 0 at the attempt's start where that
// is in the window. Some counters are sums over the threads that live and fall
// when one ends: a fall counts as nothing, so that the line never falls.
func (r *readings) counter(column string) line {
	if l, ok := r.lines[column]; ok {
		return l
	}
	var l line
	raw := r.gauge(column)
	level := 0.0
	for i, v := range raw.value {
		if i == 0 {
			if begun := r.seconds(r.start); r.anchors(column) && begun < raw.at[0] {
				l.at, l.value = append(l.at, begun), append(l.value, 0)
				level = v
			}
		} else {
			level += max(0, v-raw.value[i-1])
		}
		l.at, l.value = append(l.at, raw.at[i]), append(l.value, level)
	}
	r.lines[column] = l
	return l
}

// anchors tells whether a column counts from 0 at the start of the attempt. The
// node's own columns count from whenever they like.
func (r *readings) anchors(column string) bool {
	return r.whole && !r.start.IsZero() && !strings.HasPrefix(column, "node_")
}

// gauge is a column as it was read, without what cannot be a reading.
func (r *readings) gauge(column string) line {
	var l line
	for _, s := range r.samples {
		if v, ok := s.Values[column]; ok && v >= 0 && !math.IsInf(v, 0) {
			l.at, l.value = append(l.at, r.seconds(s.Time)), append(l.value, v)
		}
	}
	return l
}

// delta is how much a counter grew between two times, linear between readings;
// false where the readings do not reach that far.
func (r *readings) delta(column string, from, to float64) (float64, bool) {
	l := r.counter(column)
	a, okA := l.interpolate(from)
	b, okB := l.interpolate(to)
	return b - a, okA && okB
}

// holed tells whether a time lies beside a reading that lacks a column: the exporter did
// not know it then, such as a job's joules while its GPUs do not answer, and a line drawn
// across would only look measured.
func (r *readings) holed(column string, at float64) bool {
	before := false // the last reading lacks it
	for _, s := range r.samples {
		if !counts(s) {
			continue
		}
		_, known := s.Values[column]
		switch t := r.seconds(s.Time); {
		case t < at:
			before = !known
		case t == at && known:
			return false
		default:
			return before || !known
		}
	}
	return before
}

// sum is the growth of several counters together, where all are there.
func (r *readings) sum(from, to float64, columns ...string) (float64, bool) {
	total := 0.0
	for _, c := range columns {
		d, ok := r.delta(c, from, to)
		if !ok {
			return 0, false
		}
		total += d
	}
	return total, true
}

// columns are the names of all that were read.
func (r *readings) columns() []string {
	seen := map[string]bool{}
	for _, s := range r.samples {
		for c := range s.Values {
			seen[c] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// events are the perf events that were counted beside the software events.
func (r *readings) events() []string {
	var out []string
	for _, c := range r.columns() {
		if name, ok := api.EventOf(c); ok {
			out = append(out, name)
		}
	}
	return out
}

// mean is the mean of a gauge's readings between two times, ends included, or
// its interpolated middle where none falls in between.
func (r *readings) mean(column string, from, to float64) (float64, bool) {
	l := r.gauge(column)
	sum, n := 0.0, 0
	for i, at := range l.at {
		if at >= from && at <= to {
			sum, n = sum+l.value[i], n+1
		}
	}
	if n == 0 {
		return l.interpolate((from + to) / 2)
	}
	return sum / float64(n), true
}

// highest is the largest reading of a gauge, 0 where there is none.
func (r *readings) highest(column string) float64 {
	top := 0.0
	for _, v := range r.gauge(column).value {
		top = max(top, v)
	}
	return top
}

// count is the number of samples with CPU time between two times, ends included.
func (r *readings) count(from, to float64) int {
	n := 0
	for _, s := range r.samples {
		if at := r.seconds(s.Time); at >= from && at <= to && counts(s) {
			n++
		}
	}
	return n
}

func counts(s api.Sample) bool {
	for _, c := range []string{api.ColCPUSeconds, api.ColSystemSeconds, api.ColTaskClock} {
		if _, ok := s.Values[c]; ok {
			return true
		}
	}
	return false
}

func (l line) interpolate(at float64) (float64, bool) {
	i, exact := slices.BinarySearch(l.at, at)
	if exact {
		return l.value[i], true
	}
	if i == 0 || i == len(l.at) {
		return 0, false
	}
	share := (at - l.at[i-1]) / (l.at[i] - l.at[i-1])
	return l.value[i-1] + share*(l.value[i]-l.value[i-1]), true
}
