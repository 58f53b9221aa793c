package profile

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/floats"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

const (
	enoughSamples = 3    // in a window, those at both ends included
	contended     = 0.25 // share of disturbed epochs from which a profile is called contended
	multiplexed   = 0.9  // least share of the time that the perf counters ran
)

// Spec is what the caller knows about an attempt. What is 0 or empty is unknown or the default.
type Spec struct {
	WarmupEpochs int             // first epochs of each attempt that are not judged; the very first never is
	Epochs       int             // epochs that make a profile; 0 = tuning.DefaultEpochs
	Total        int             // epochs of the whole job; 0 = only the marks say it, if at all
	Settings     tuning.Settings // what the attempt runs under
	Machine      string          // api.Node.MachineKind
	NodeCores    int             // api.Node.Cores; 0 = pollution by others cannot be judged
	Still        []tuning.Span   // in which the scheduler had it suspended
	Siblings     int             // other jobs of its kind that run on its node: that they crowd it is usual
}

// Profile makes one profile of the epochs of one attempt; those under other cores and threads are
// left out.
//
// Warm-up and disturbed epochs are discarded. Neighbouring epochs are merged until a window holds
// three samples and ends with a report; what is left over joins the window before. The profile
// holds the mean of each feature after the lowest and highest quarter of the windows are taken away, so that one strange
// window does not count.
//
// With a reason the profile is not usable yet, and holds what is known so far. A job that has ended
// gets what there is: where too little was left undisturbed, of all its epochs, flagged as
// contended.
func Profile(w api.Window, epochs []tuning.Epoch, spec Spec) (tuning.Profile, tuning.Reason) {
	r := read(w)
	p := tuning.Profile{
		Schema: api.SchemaAccounting, Features: map[string]float64{}, Settings: spec.Settings.Shape(), Machine: spec.Machine,
		PeakRSS: tuning.Bytes(r.peak()),
	}
	if len(r.counted) == 0 {
		return p, tuning.ReasonNoSamples
	}
	judged := judgeable(w, epochs, spec)
	clean := slices.DeleteFunc(slices.Clone(judged), func(e tuning.Epoch) bool { return e.Polluted && !(e.Crowded && spec.Siblings > 0) })
	windows := r.merge(clean, spec)
	full := slices.DeleteFunc(slices.Clone(windows), thin)
	contention := float64(len(judged)-len(clean)) / float64(max(1, len(judged)))
	covered := tuning.Sum(full, func(x stretch) int { return x.epochs })
	wanted := cmp.Or(spec.Epochs, tuning.DefaultEpochs)
	reason := tuning.ReasonProfiling
	switch {
	case len(judged) == 0:
		reason = tuning.ReasonWarmingUp
	case covered >= wanted, w.Job.Ended && len(windows) > 0:
		reason = tuning.ReasonNone
	case len(clean) < wanted && len(judged) >= wanted, len(clean) == 0 && w.Job.Ended:
		reason = tuning.ReasonPolluted
	case w.Job.Ended:
		reason = tuning.ReasonNoSamples
	}
	if len(full) == 0 && w.Job.Ended && len(windows) > 0 {
		if full = slices.DeleteFunc(r.merge(judged, spec), thin); len(full) > 0 {
			contention = 1
		}
	}
	if len(full) > 0 {
		windows = full
	}
	fill(&p, r, windows)
	p.Flags = flags(p, r, windows, contention)
	return p, reason
}

// judgeable are the epochs of this attempt that are past warm-up, in order.
func judgeable(w api.Window, epochs []tuning.Epoch, spec Spec) []tuning.Epoch {
	out := slices.DeleteFunc(slices.Clone(epochs), func(e tuning.Epoch) bool {
		return e.Attempt != w.Job.Attempt || e.Warmup || !e.Settings.Shape().Equal(spec.Settings.Shape())
	})
	slices.SortStableFunc(out, func(a, b tuning.Epoch) int { return a.Start.Compare(b.Start) })
	return out
}

func thin(x stretch) bool { return x.samples < enoughSamples }

// The last window may hold fewer samples where there is none before that it could join.
func (r *readings) merge(clean []tuning.Epoch, spec Spec) []stretch {
	var out []stretch
	for len(clean) > 0 {
		run := 1
		for run < len(clean) && clean[run].Start.Equal(clean[run-1].End) {
			run++
		}
		out = append(out, r.mergeRun(clean[:run], spec)...)
		clean = clean[run:]
	}
	return out
}

func (r *readings) mergeRun(run []tuning.Epoch, spec Spec) []stretch {
	var out []stretch
	first := 0
	for i := range run {
		x, ok := r.stretch(run[first:i+1], spec)
		last := i == len(run)-1
		switch {
		case !ok, run[i].Inner: // the epochs of a report are one measurement
		case !thin(x):
			out = append(out, x)
			first = i + 1
		case last && len(out) > 0:
			n := len(out) - 1
			out[n], _ = r.stretch(run[first-out[n].epochs:], spec)
		case last:
			out = append(out, x)
		}
	}
	return out
}

func fill(p *tuning.Profile, r *readings, windows []stretch) {
	values := map[string][]float64{}
	perf := len(windows) > 0
	of := r.values()
	for _, x := range windows {
		p.Epochs += x.epochs
		p.Samples += x.samples
		p.Seconds += x.wall()
		for name, v := range x.features(of) {
			values[name] = append(values[name], v)
		}
		_, counted := r.delta(x.from, x.to, api.ColMinorFaults, api.ColContextSwitch)
		perf = perf && counted
	}
	if perf {
		p.Schema = api.SchemaWith(r.events())
	}
	for name, v := range values {
		p.Features[name] = trimmed(v)
	}
	if slices.ContainsFunc(r.columns(), func(c string) bool { return strings.HasPrefix(c, "gpu_") }) {
		p.Schema += "+gpu/1" // never compared with a job that was not on a GPU
	}
}

// trimmed is the mean without the lowest and the highest quarter.
func trimmed(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	if len(v) >= 3 {
		cut := max(1, len(v)/4)
		v = v[cut : len(v)-cut]
	}
	return floats.Sum(v) / float64(len(v))
}

func flags(p tuning.Profile, r *readings, windows []stretch, contention float64) []tuning.Flag {
	var out []tuning.Flag
	for _, x := range []struct {
		flag tuning.Flag
		so   bool
	}{
		{tuning.FlagFewSamples, slices.ContainsFunc(windows, thin)},
		{tuning.FlagContended, contention >= contended},
		{tuning.FlagMultiplexed, r.shared(windows)},
		{tuning.FlagNoPerf, len(windows) > 0 && strings.HasPrefix(p.Schema, api.SchemaAccounting)},
	} {
		if x.so {
			out = append(out, x.flag)
		}
	}
	return out
}

// shared reports whether some group of perf events counted for too small a part of the time.
func (r *readings) shared(windows []stretch) bool {
	times := map[string]string{api.ColPerfEnabled: api.ColPerfRunning}
	for _, c := range r.columns() {
		if group, ok := api.GroupOf(c); ok {
			times[c] = api.PerfRunning(group)
		}
	}
	for enabledColumn, runningColumn := range times {
		running, enabled := 0.0, 0.0
		for _, x := range windows {
			a, okA := r.delta(x.from, x.to, runningColumn)
			b, okB := r.delta(x.from, x.to, enabledColumn)
			if okA && okB {
				running, enabled = running+a, enabled+b
			}
		}
		if running < multiplexed*enabled {
			return true
		}
	}
	return false
}

// Epochs cuts one attempt's window into the epochs that ended in it, in order. The window must be
// whole except for what the ring dropped (api.Window.Dropped).
//
// Epoch n lasts from the mark of n-1 to its own; the first of the attempt from the attempt's start,
// and it is always warm-up. Where marks skip numbers, time and joules are shared out evenly. Where
// the ring dropped samples, the first mark left is only a beginning, unless it is that of epoch 1.
// Joules is nil where the energy column has a hole at one end of the epoch. Epochs next to a late mark are
// polluted: their end is unknown. Where lines may have been there before their reader, as on Slurm, where it
// comes seconds after the job, they and the epoch after them are warm-up. So are the epochs that an attempt
// reports in one go first: its start is in their time.
func Epochs(w api.Window, spec Spec) []tuning.Epoch {
	r := read(w)
	var out []tuning.Epoch
	ended := 0 // epochs of this attempt so far
	var last mark
	for i, m := range r.marks(spec) {
		from, n := last.at, m.epoch-last.epoch
		if i == 0 {
			from, n = r.begin(), m.epoch-m.said[0].Epoch+1
		}
		known := i > 0 || r.whole || m.said[0].Epoch == 1 && !r.start.IsZero()
		if known && m.at.After(from) {
			joules, measured := r.measured(r.seconds(from), r.seconds(m.at), api.ColJoules)
			late, by := last.late || m.late, r.disturbance(tuning.Span{From: from, To: m.at}, spec)
			for k := range n {
				e := tuning.Epoch{
					Number:   m.epoch - n + 1 + k,
					Attempt:  w.Job.Attempt,
					Start:    between(from, m.at, k, n),
					End:      between(from, m.at, k+1, n),
					Settings: spec.Settings.Clone(),
					Warmup:   ended+k < max(1, spec.WarmupEpochs) || i == 0 && n > 1 || m.old || last.old,
					Polluted: late || by != "", Crowded: !late && (by == Others || by == Pressure),
				}
				if e.Inner = k < n-1; n > 1 && !e.Inner {
					e.Together = n
				}
				if at, found := slices.BinarySearchFunc(m.said, e.Number, func(r api.Report, n int) int { return cmp.Compare(r.Epoch, n) }); found {
					e.Loss, e.Quality, e.Diverged = m.said[at].Loss, m.said[at].Quality, m.said[at].Diverged
				}
				if measured {
					each := tuning.Joules(joules / float64(n))
					e.Joules, e.Source = &each, w.Source
				}
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

// Any process inside a job can report progress: a mark that cannot be true is ignored.
const (
	// maxGap bounds how many epochs may end between two marks.
	maxGap = 64

	// maxEpochs bounds the epochs of one attempt, which cost memory and time.
	maxEpochs = 10_000

	// punctual is how late a mark may be. One that waited longer has a snapshot of another moment.
	punctual = time.Second

	// burst is how close two marks are, or the readings of their lines, when the job wrote these in one go.
	burst = 2 * time.Millisecond

	// pieces is the same where lines may have been read in pieces: where none came for 100 times as long before.
	pieces = 20 * time.Millisecond

	// whole is how long without another report makes a burst complete.
	whole = 500 * time.Millisecond

	// backlog is how long a reader that came later than the job may read what was written before.
	backlog = 250 * time.Millisecond
)

type mark struct {
	epoch int
	at    time.Time
	late  bool         // delivered long after its line was read
	old   bool         // its line may have been there before its reader
	said  []api.Report // of its burst, by epoch; the last one is its own
}

func (m mark) report() api.Report { return m.said[len(m.said)-1] }

// with reports whether a mark is of the burst of the one before, which came after so long a silence.
func (m mark) with(before mark, silence time.Duration) bool {
	now, first, last := m.report().Time, before.said[0].Time, before.report().Time
	return m.at.Sub(before.at) < burst ||
		!now.IsZero() && !last.IsZero() && (now.Sub(last).Abs() < burst || now.Sub(first).Abs() < min(silence/100, pieces))
}

// marks reads the ends of epochs, in time and in number both rising. The last of several marks for
// one epoch wins: the job reported within the epoch, or once for training and once for validation.
// Of a burst only the last is left, and the time is shared out.
func (r *readings) marks(spec Spec) []mark {
	var out []mark
	var newest time.Time
	for i, s := range r.samples {
		if s.Mark == nil {
			continue
		}
		m := mark{epoch: s.Mark.Epoch, said: []api.Report{*s.Mark}}
		m.late = !s.Mark.Time.IsZero() && s.Time.Sub(s.Mark.Time) > punctual
		read := s.Mark.Time.Sub(r.heard)
		m.old = !r.heard.IsZero() && r.heard.Sub(r.start) >= backlog && read >= 0 && read < backlog
		m.at = r.markTime(i, m.late, out)
		if !believed(out, m, spec) {
			continue
		}
		if n := len(out); n > 0 {
			before, from := out[n-1], r.begin()
			if n > 1 {
				from = out[n-2].at
			}
			again := m.epoch == before.epoch
			same := again || m.with(before, before.at.Sub(from))
			switch {
			case again:
				before.said = before.said[:len(before.said)-1]
			case same: // one after the other they take long to deliver
				m.at, m.late, m.old = before.at, before.late, before.old
				if at := before.report().Time; len(before.said) == 1 && at.Before(m.at) && at.After(from) {
					m.at, m.late = at, false
				}
			}
			if same {
				m.said, out = append(before.said, m.said...), out[:n-1]
			}
		}
		out, newest = append(out, m), s.Time
	}
	if n := len(out); n > 0 && len(out[n-1].said) > 1 && r.now.Sub(newest) < whole {
		out = out[:n-1]
	}
	return out
}

// believed reports whether a mark can be true after those before.
func believed(before []mark, m mark, spec Spec) bool {
	if m.epoch < 1 || spec.Total > 0 && m.epoch > spec.Total || m.report().Total > 0 && m.epoch > m.report().Total {
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
