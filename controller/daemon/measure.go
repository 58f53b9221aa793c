package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/exporter/api"
)

// keptSamples bounds the samples of one attempt. Beyond it the older half keeps
// only its progress marks, which hold the epochs.
const keptSamples = 4096

type windowKey struct {
	job     string
	attempt int
}

// attemptWindow holds the samples of one attempt so far, and what was derived from them.
type attemptWindow struct {
	window   api.Window
	settings tuning.Settings
	measured *reconcile.Measurement // nil when something came since
	early    *tuning.Profile        // of its first epochs under settings, once there are enough
	budget   sentBudget             // that the exporter got
}

// measure fetches the new samples of an attempt and measures it. Without new samples it
// returns the last answer.
func (r *services) measure(ctx context.Context, q reconcile.MeasureRequest) (reconcile.Measurement, error) {
	node, err := r.nodes.Node(ctx, q.Node)
	if err != nil {
		return reconcile.Measurement{}, err
	}
	key := windowKey{string(q.Job), q.Attempt}
	r.mu.Lock()
	var known attemptWindow
	if l := r.windows[key]; l != nil {
		known = *l
	}
	r.mu.Unlock()
	// The name has the scheduler: another one on the node may use the same ids.
	name, attempt := r.driver.Name()+"/"+cmp.Or(q.Unit, q.Alias, key.job), key.attempt
	if q.Unit != "" {
		attempt = 1
	}
	fresh, err := r.nodes.Window(ctx, q.Node, name, attempt, known.settled())
	if err == nil && !fresh.Job.Started.Equal(known.window.Job.Started) && len(known.window.Samples) > 0 {
		// The exporter was restarted and counts from the beginning again.
		known = attemptWindow{}
		fresh, err = r.nodes.Window(ctx, q.Node, name, attempt, 0)
	}
	if err != nil {
		return reconcile.Measurement{}, err
	}
	fresh = within(fresh, q.From, q.To)
	if fresh.Job.Started.Before(q.From) && len(known.window.Samples)+len(fresh.Samples) == 0 {
		return reconcile.Measurement{}, fmt.Errorf("what %s knows of %s is from before %s: %w", q.Node, name, q.From.Format(time.RFC3339), api.ErrNotFound)
	}
	fresh.Job.Attempt = key.attempt // not as the exporter counts those of a unit
	known.add(fresh)
	known.budget = r.sendBudget(ctx, known.budget, q, name, attempt, fresh.Job)
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
		r.windows = map[windowKey]*attemptWindow{}
	}
	r.windows[key] = &known
	m := *known.measured
	m.Epochs = slices.Clone(m.Epochs)
	m.Joules, m.Source = joules(known.window, q.From)
	return m, nil
}

// joules are those that the exporter counted since the attempt began; nil where it had begun to count
// before, as for another job under the id.
func joules(w api.Window, from time.Time) (*tuning.Joules, string) {
	if cmp.Or(w.Job.First, w.Job.Started).Before(from) {
		return nil, ""
	}
	for _, s := range slices.Backward(w.Samples) {
		if s.Mark != nil {
			continue // not final
		}
		if v, ok := s.Values[api.ColJoules]; ok && v >= 0 && !math.IsInf(v, 0) {
			return new(tuning.Joules(v)), w.Source
		}
		break
	}
	return nil, ""
}

// within drops the samples before and after an attempt. A zero time means no bound.
func within(w api.Window, from, to time.Time) api.Window {
	if w.Job.Started.Before(from) {
		w.Dropped++ // the rest does not count from the attempt's start
	}
	w.Samples = slices.DeleteFunc(slices.Clone(w.Samples), func(s api.Sample) bool {
		return s.Time.Before(from) || !to.IsZero() && !s.Time.Before(to)
	})
	return w
}

// settled is the newest sample that is final: the exporter corrects the joules of a
// progress mark at its next tick.
func (l *attemptWindow) settled() uint64 {
	for _, s := range slices.Backward(l.window.Samples) {
		if s.Mark == nil {
			return s.Seq
		}
	}
	return 0
}

// add appends new samples to a copy, so that older answers share nothing. A sample within
// an epoch causes no new measurement: it counts when the epoch or the job ends.
func (l *attemptWindow) add(fresh api.Window) {
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

// read computes epochs and a profile from a window. The profile covers the first epochs
// that suffice: decisions come early, and what is learned has to compare with what they
// see. Early is that profile from before, since the samples of those epochs may be gone.
func read(w api.Window, q reconcile.MeasureRequest, node api.Node, early *tuning.Profile) reconcile.Measurement {
	spec := profile.Spec{
		WarmupEpochs: q.Policy.Profile.WarmupEpochs, Epochs: q.Policy.Profile.Epochs, Total: q.Policy.Progress.Total,
		Settings: q.Settings, Machine: node.MachineKind, NodeCores: node.Cores, Still: q.Still, Siblings: q.Siblings,
	}
	m := reconcile.Measurement{Epochs: profile.Epochs(w, spec), Total: q.Policy.Progress.Total, Ended: w.Job.Ended, Heard: w.Job.Heard}
	if q.Policy.Progress.Pattern == "" { // the job reports by itself
		m.Heard = w.Job.Started
	}
	m.CPU, m.CPUOver = profile.CPU(w)
	for i := range m.Epochs {
		m.Epochs[i].Settings, m.Epochs[i].Machine = q.Settings, node.MachineKind
	}
	for _, s := range w.Samples {
		if s.Mark != nil && s.Mark.Total > 0 {
			m.Total = s.Mark.Total
		}
		if s.Mark != nil && m.Heard.IsZero() {
			m.Heard = s.Time
		}
	}
	if q.Policy.Checkpoint != nil {
		m.Fatal = fatal(w.Samples, unix.SignalNum(driver.Checkpoint{Signal: q.Policy.Checkpoint.Signal}.SignalName()))
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

// lastSeen is how many samples may lack the processes of a job, as those after its end and of a busy node do.
const lastSeen = 64

// fatal reports whether a signal would end the job, as its processes were when they were last seen.
func fatal(samples []api.Sample, signal unix.Signal) bool {
	for _, s := range slices.Backward(samples[max(0, len(samples)-lastSeen):]) {
		if mask, ok := s.Values[api.ColFatalSignals]; ok {
			return signal > 0 && uint64(mask)>>(signal-1)&1 == 1
		}
	}
	return false
}

// firstProfile is the profile of the fewest epochs from the beginning that suffice, or nil
// where the attempt was too short.
func firstProfile(w api.Window, epochs []tuning.Epoch, spec profile.Spec) *tuning.Profile {
	w.Job.Ended = false // an ended attempt gets a profile of any length
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

func (r *services) forget(job string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.windows, func(key windowKey, _ *attemptWindow) bool { return key.job == job })
}
