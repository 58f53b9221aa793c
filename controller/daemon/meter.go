package daemon

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

const (
	// keptSamples bounds what is remembered of one attempt: when it is passed,
	// the older half is thinned to its progress marks, which hold the epochs.
	keptSamples = 4096
)

type windowKey struct {
	job     string
	attempt int
}

// listening is what was heard of one attempt so far, and what was made of it.
type listening struct {
	window   api.Window
	settings tuning.Settings
	measured *reconcile.Measurement // nil when something came since
	early    *tuning.Profile        // of its first epochs under settings, once there are enough
	allowed  allowed                // what the exporter was told that it may use
}

// measure asks for what is new about an attempt and measures it anew; while
// nothing is new the last answer stands.
func (r *rooms) measure(ctx context.Context, q reconcile.MeasureRequest) (reconcile.Measurement, error) {
	node, err := r.nodes.Node(ctx, q.Node)
	if err != nil {
		return reconcile.Measurement{}, err
	}
	key := windowKey{string(q.Job), q.Attempt}
	r.mu.Lock()
	var known listening
	if l := r.windows[key]; l != nil {
		known = *l
	}
	r.mu.Unlock()
	// By scheduler and id: another scheduler of the node may count its jobs alike.
	name, attempt := r.driver.Name()+"/"+cmp.Or(q.Unit, q.Alias, key.job), key.attempt
	if q.Unit != "" {
		attempt = 1
	}
	fresh, err := r.nodes.Window(ctx, q.Node, name, attempt, known.settled())
	if err == nil && !fresh.Job.Started.Equal(known.window.Job.Started) && len(known.window.Samples) > 0 {
		// The exporter was restarted and counts from the beginning again.
		known = listening{}
		fresh, err = r.nodes.Window(ctx, q.Node, name, attempt, 0)
	}
	if err != nil {
		return reconcile.Measurement{}, err
	}
	fresh = within(fresh, q.From, q.To)
	fresh.Job.Attempt = key.attempt // not as the exporter counts those of a unit
	known.hear(fresh)
	known.allowed = r.allow(ctx, known.allowed, q, name, attempt, fresh.Job)
	if !known.settings.Equal(q.Settings) {
		known.measured, known.early = nil, nil
	}
	if known.measured == nil {
		m := read(known.window, q, node, known.early)
		known.measured, known.settings = &m, q.Settings
		if m.Reason == tuning.ReasonNone && !known.window.Job.Ended {
			known.early = &m.Profile
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.windows == nil {
		r.windows = map[windowKey]*listening{}
	}
	r.windows[key] = &known
	m := *known.measured
	m.Epochs = slices.Clone(m.Epochs)
	return m, nil
}

// within leaves out of a window what was before or behind an attempt; zero times bound
// nothing.
func within(w api.Window, from, to time.Time) api.Window {
	if w.Job.Started.Before(from) {
		w.Dropped++ // what is left does not count from the attempt's start
	}
	w.Samples = slices.DeleteFunc(slices.Clone(w.Samples), func(s api.Sample) bool {
		return s.Time.Before(from) || !to.IsZero() && !s.Time.Before(to)
	})
	return w
}

// settled is the newest sample behind which nothing changes any more: the joules
// of a progress mark are set right at the next tick.
func (l *listening) settled() uint64 {
	for _, s := range slices.Backward(l.window.Samples) {
		if s.Mark == nil {
			return s.Seq
		}
	}
	return 0
}

// hear adds what is new. The samples are copied: older answers share nothing. Within an
// epoch nothing is measured anew: what was read then counts at its end, or at the job's.
func (l *listening) hear(fresh api.Window) {
	settled := l.settled()
	newer := func(s api.Sample) bool { return s.Seq > settled }
	samples := slices.DeleteFunc(slices.Clone(l.window.Samples), newer)
	news := fresh.Job.Ended != l.window.Job.Ended
	for _, s := range fresh.Samples {
		if newer(s) {
			samples = append(samples, s)
			news = news || s.Mark != nil
		}
	}
	if news || l.measured != nil && l.measured.Reason == tuning.ReasonNoSamples {
		l.measured = nil
	}
	if len(samples) > keptSamples {
		half := len(samples) / 2
		marks := slices.DeleteFunc(samples[:half:half], func(s api.Sample) bool { return s.Mark == nil })
		samples = append(marks, samples[half:]...)
	}
	l.window = fresh
	l.window.Samples = samples
}

// read makes epochs and a profile of a window. The profile is that of the first
// epochs that make one: jobs are asked about early, so what is learned of them
// must be as early to be like it. Where it was made before, it is handed in, since
// the samples of those epochs may be gone by now.
func read(w api.Window, q reconcile.MeasureRequest, node api.Node, early *tuning.Profile) reconcile.Measurement {
	spec := profile.Spec{
		WarmupEpochs: q.Policy.Profile.WarmupEpochs, Epochs: q.Policy.Profile.Epochs, Total: q.Policy.Progress.Total,
		Settings: q.Settings, Machine: node.MachineKind, NodeCores: node.Cores, Still: q.Still,
	}
	m := reconcile.Measurement{Epochs: profile.Epochs(w, spec), Total: q.Policy.Progress.Total, Ended: w.Job.Ended}
	for i := range m.Epochs {
		m.Epochs[i].Settings, m.Epochs[i].Machine = q.Settings, node.MachineKind
	}
	for _, s := range w.Samples {
		if s.Mark != nil && s.Mark.Total > 0 {
			m.Total = s.Mark.Total
		}
	}
	if early != nil {
		m.Profile, m.Reason, m.Peak = *early, tuning.ReasonNone, profile.Peak(w)
		return m
	}
	m.Profile, m.Reason = profile.Profile(w, m.Epochs, spec)
	m.Peak = m.Profile.PeakRSS
	if m.Reason == tuning.ReasonNone {
		if early = firstProfile(w, m.Epochs, spec); early != nil {
			m.Profile = *early
		}
	}
	return m
}

// firstProfile is that of the fewest epochs from the beginning that make one; nil
// where an attempt was too short for any and has only what there is.
func firstProfile(w api.Window, epochs []tuning.Epoch, spec profile.Spec) *tuning.Profile {
	w.Job.Ended = false // an attempt that ended gets a profile of anything
	n := sort.Search(len(epochs), func(i int) bool {
		_, reason := profile.Profile(w, epochs[:i+1], spec)
		return reason == tuning.ReasonNone
	})
	if n == len(epochs) {
		return nil
	}
	p, _ := profile.Profile(w, epochs[:n+1], spec)
	return &p
}

func (r *rooms) forget(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.windows {
		if key.job == job {
			delete(r.windows, key)
		}
	}
}
