package profile

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// readings are the samples of a window, one line per column, made when it is first asked for.
type readings struct {
	samples  []api.Sample // by time
	counted  []api.Sample // those with CPU time
	start    time.Time    // of the attempt; zero = unknown
	heard    time.Time    // since when a reader reads its lines; zero = unknown
	zero     time.Time    // where the seconds count from
	now      time.Time    // when the window was asked for; far off where that is unknown, or the job has ended
	whole    bool         // the ring forgot nothing
	gauges   map[string]line
	counters map[string]line
	names    []string // of all columns, once they were asked for
}

// line is a column: values at times, both in order.
type line struct{ at, value []float64 }

func read(w api.Window) *readings {
	r := &readings{
		samples: w.Samples, start: w.Job.Started, heard: w.Job.Heard, whole: w.Dropped == 0,
		gauges: map[string]line{}, counters: map[string]line{},
	}
	if r.now = w.Now; w.Job.Ended || w.Now.IsZero() {
		r.now = time.Unix(1<<33, 0)
	}
	byTime := func(a, b api.Sample) int { return a.Time.Compare(b.Time) }
	if !slices.IsSortedFunc(r.samples, byTime) {
		r.samples = slices.Clone(r.samples) // they are the caller's
		slices.SortStableFunc(r.samples, byTime)
	}
	if len(r.samples) > 0 {
		r.zero = r.samples[0].Time
	}
	for _, s := range r.samples {
		_, all := s.Values[api.ColCPUSeconds]
		_, part := s.Values[api.ColSystemSeconds]
		_, clock := s.Values[api.ColTaskClock]
		if all || part || clock {
			r.counted = append(r.counted, s)
		}
	}
	return r
}

// Peak is the largest resident memory of a window: as sampled, or the kernel's own peak, which
// counts file pages too, less these.
func Peak(w api.Window) tuning.Bytes { return tuning.Bytes(read(w).peak()) }

// CPU is the CPU time of a window in seconds, and the seconds over which it was counted.
func CPU(w api.Window) (cpu, over float64) {
	counts := func(s api.Sample) bool { _, ok := s.Values[api.ColCPUSeconds]; return ok }
	first := slices.IndexFunc(w.Samples, counts)
	for _, s := range slices.Backward(w.Samples) {
		if counts(s) {
			from := w.Samples[first]
			return s.Values[api.ColCPUSeconds] - from.Values[api.ColCPUSeconds], s.Time.Sub(from.Time).Seconds()
		}
	}
	return 0, 0
}

func (r *readings) peak() float64 {
	return max(r.highest(api.ColRSS), r.highest(api.ColPeak)-r.highest(api.ColCache))
}

func (r *readings) seconds(t time.Time) float64 { return t.Sub(r.zero).Seconds() }

// counter is a column that only grows, from 0 at the attempt's start where that is in the window. A
// sum over threads falls when one ends: a fall counts as nothing.
func (r *readings) counter(column string) line {
	if l, ok := r.counters[column]; ok {
		return l
	}
	var l line
	raw := r.gauge(column)
	level, last := 0.0, 0.0
	// The node's own columns count from whenever they like.
	fromStart := r.whole && !r.start.IsZero() && !strings.HasPrefix(column, "node_")
	if begun := r.seconds(r.start); fromStart && len(raw.at) > 0 && begun < raw.at[0] {
		l.at, l.value = append(l.at, begun), append(l.value, 0)
	} else if len(raw.at) > 0 {
		last = raw.value[0]
	}
	for i, v := range raw.value {
		level += max(0, v-last)
		last = v
		l.at, l.value = append(l.at, raw.at[i]), append(l.value, level)
	}
	r.counters[column] = l
	return l
}

// gauge is a column as it was read, without what cannot be a reading.
func (r *readings) gauge(column string) line {
	if l, ok := r.gauges[column]; ok {
		return l
	}
	var l line
	for _, s := range r.samples {
		if v, ok := s.Values[column]; ok && v >= 0 && !math.IsInf(v, 0) {
			l.at, l.value = append(l.at, r.seconds(s.Time)), append(l.value, v)
		}
	}
	r.gauges[column] = l
	return l
}

// false: the readings of a column do not reach that far.
func (r *readings) delta(from, to float64, columns ...string) (float64, bool) {
	total, reached := 0.0, true
	for _, column := range columns {
		l := r.counter(column)
		a, okA := l.interpolate(from)
		b, okB := l.interpolate(to)
		total += b - a
		reached = reached && okA && okB
	}
	return total, reached
}

// measured is delta where the column was read at both ends. A reading that lacks it is a hole: a
// line across would only look measured.
func (r *readings) measured(from, to float64, column string) (float64, bool) {
	d, ok := r.delta(from, to, column)
	for _, end := range []float64{from, to} {
		i, exact := r.firstCounted(end)
		beside := r.counted[max(i-1, 0):min(i+1, len(r.counted))]
		if exact {
			beside = r.counted[i : i+1]
		}
		for _, s := range beside {
			_, known := s.Values[column]
			ok = ok && known
		}
	}
	return d, ok
}

func (r *readings) firstCounted(at float64) (int, bool) {
	return slices.BinarySearchFunc(r.counted, at, func(s api.Sample, at float64) int { return cmp.Compare(r.seconds(s.Time), at) })
}

func (r *readings) columns() []string {
	if r.names == nil {
		seen := map[string]bool{}
		for _, s := range r.samples {
			for c := range s.Values {
				seen[c] = true
			}
		}
		r.names = slices.Sorted(maps.Keys(seen))
	}
	return r.names
}

func (r *readings) events() []string {
	var out []string
	for _, c := range r.columns() {
		if name, ok := api.EventOf(c); ok {
			out = append(out, name)
		}
	}
	return out
}

// Without readings it is the interpolated middle.
func (r *readings) mean(column string, from, to float64) (float64, bool) {
	l := r.gauge(column)
	sum, n := 0.0, 0
	first, _ := slices.BinarySearch(l.at, from)
	for i := first; i < len(l.at) && l.at[i] <= to; i++ {
		sum, n = sum+l.value[i], n+1
	}
	if n == 0 {
		return l.interpolate((from + to) / 2)
	}
	return sum / float64(n), true
}

// highest is the largest reading of a gauge, 0 where there is none.
func (r *readings) highest(column string) float64 {
	return slices.Max(append([]float64{0}, r.gauge(column).value...))
}

func (r *readings) count(from, to float64) int {
	first, _ := r.firstCounted(from)
	n := first
	for n < len(r.counted) && r.seconds(r.counted[n].Time) <= to {
		n++
	}
	return n - first
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
