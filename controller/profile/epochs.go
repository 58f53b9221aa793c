package profile

import (
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// Epochs cuts one attempt's window into the epochs that ended in it, in order. The window must be
// whole but for what the ring dropped (api.Window.Dropped).
//
// Epoch n lasts from the mark of n-1 to its own; the first of the attempt from the attempt's start,
// and it is always warm-up. Where marks skip numbers, time and joules are shared out evenly. Where
// the ring dropped samples, the first mark left is only a beginning, unless it is that of epoch 1.
// Joules is nil where the energy column has a hole at one end of the epoch. Beside a late mark
// epochs are polluted: when they ended is unknown.
func Epochs(w api.Window, spec Spec) []tuning.Epoch {
	r := read(w)
	var out []tuning.Epoch
	ended := 0 // epochs of this attempt so far
	var last mark
	for i, m := range r.marks(spec) {
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
					Warmup:   ended+k < max(1, spec.WarmupEpochs),
				}
				if k == n-1 {
					e.Loss, e.Quality = m.report.Loss, m.report.Quality
				}
				from, to := r.seconds(e.Start), r.seconds(e.End)
				if j, ok := r.measured(from, to, api.ColJoules); ok {
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

// Whoever runs inside a job can report progress: a mark that cannot be true is not believed.
const (
	// maxGap bounds how many epochs may end between two marks.
	maxGap = 64

	// maxEpochs bounds the epochs of one attempt, which cost memory and time.
	maxEpochs = 10_000

	// punctual is how late a mark may be. One that waited longer has a snapshot of another moment.
	punctual = time.Second

	// burst is how close two marks are when the job wrote its lines in one go.
	burst = 2 * time.Millisecond
)

// mark is the end of an epoch.
type mark struct {
	epoch  int
	at     time.Time
	late   bool // delivered long after its line was read
	report api.Report
}

// marks reads the ends of epochs, in time and in number both rising. Of several marks for one epoch
// the last wins: the job reported within the epoch, or once for training and once for validation.
// Of a burst only the last is left, and the time is shared out.
func (r *readings) marks(spec Spec) []mark {
	var out []mark
	for i, s := range r.samples {
		if s.Mark == nil {
			continue
		}
		m := mark{epoch: s.Mark.Epoch, report: *s.Mark}
		m.late = !s.Mark.Time.IsZero() && s.Time.Sub(s.Mark.Time) > punctual
		m.at = r.markTime(i, m.late, out)
		if !believed(out, m, spec) {
			continue
		}
		if n := len(out); n > 0 && (out[n-1].epoch == m.epoch || m.at.Sub(out[n-1].at) < burst) {
			out = out[:n-1]
		}
		out = append(out, m)
	}
	return out
}

// believed reports whether a mark can be true after those before.
func believed(before []mark, m mark, spec Spec) bool {
	if m.epoch < 1 || spec.Total > 0 && m.epoch > spec.Total || m.report.Total > 0 && m.epoch > m.report.Total {
		return false
	}
	if len(before) == 0 {
		return true
	}
	gap := m.epoch - before[len(before)-1].epoch
	return gap >= 0 && gap <= maxGap && m.epoch-before[0].epoch < maxEpochs
}

// markTime is the time of the snapshot, so that what is counted and how long it took belong
// together. A mark without a snapshot has the time its line was read.
func (r *readings) markTime(i int, late bool, before []mark) time.Time {
	s := r.samples[i]
	told := s.Mark.Time
	if late {
		from := r.begin()
		if n := len(before); n > 0 {
			from = before[n-1].at
		}
		if told.After(from) {
			return told
		}
		return s.Time
	}
	if len(s.Values) > 0 || told.IsZero() || told.After(s.Time) || i > 0 && told.Before(r.samples[i-1].Time) {
		return s.Time
	}
	return told
}
