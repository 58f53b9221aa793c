package profile

import (
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// Epochs cuts one attempt's window into the epochs that ended in it, in order.
// The window must be whole but for what the ring dropped (api.Window.Dropped).
//
// Epoch n lasts from the mark of n-1 to its own; the first of the attempt from
// the attempt's start, and it is always warm-up. Where marks skip numbers, the
// time and joules between are shared out evenly. Where the ring has dropped
// samples, the first mark left is only a beginning, unless it is that of epoch 1.
// Joules, in which those of the job's GPUs are, is nil where the energy column does not
// reach over the epoch, or has a hole at one of its ends. Between
// marks of which one came late the epochs are polluted: when they ended is unknown.
func Epochs(w api.Window, spec Spec) []tuning.Epoch {
	r := read(w)
	found, _ := marks(r, spec)
	var out []tuning.Epoch
	ended := 0 // epochs of this attempt so far
	var last mark
	for i, m := range found {
		from, n := last.at, m.epoch-last.epoch
		if i == 0 {
			from, n = r.begin(), 1
		}
		known := i > 0 || r.whole || m.epoch == 1 && !r.start.IsZero()
		if known && m.at.After(from) {
			for k := range n {
				e := tuning.Epoch{
					Number:   m.epoch - n + 1 + k,
					Attempt:  w.Job.Attempt,
					Start:    between(from, m.at, k, n),
					End:      between(from, m.at, k+1, n),
					Settings: spec.Settings.Clone(),
					Warmup:   ended+k < spec.warmup(),
				}
				if k == n-1 {
					e.Loss, e.Quality = m.report.Loss, m.report.Quality
				}
				from, to := r.seconds(e.Start), r.seconds(e.End)
				if j, ok := r.delta(api.ColJoules, from, to); ok && !r.holed(api.ColJoules, from) && !r.holed(api.ColJoules, to) {
					joules := tuning.Joules(j)
					e.Joules, e.Source = &joules, w.Source
				}
				e.Polluted = last.late || m.late || r.disturbance(e, spec) != ""
				out = append(out, e)
			}
		}
		ended += n
		last = m
	}
	return out
}

// begin is when the attempt began, as far as the window knows.
func (r *readings) begin() time.Time {
	if len(r.samples) > 0 && (r.start.IsZero() || r.start.After(r.zero)) {
		return r.zero
	}
	return r.start
}

func between(from, to time.Time, k, n int) time.Time {
	if k == n {
		return to
	}
	return from.Add(to.Sub(from) / time.Duration(n) * time.Duration(k))
}
