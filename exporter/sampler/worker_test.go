package sampler_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// fault is a source that counts seconds, and hangs or fails on request.
type fault struct {
	mu     sync.Mutex
	hang   chan struct{} // a call waits until it is closed; nil = it does not
	err    error
	opened int
	closed int
	calls  int
}

func (f *fault) set(hang chan struct{}, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hang, f.err = hang, err
}

func (f *fault) enter() error {
	f.mu.Lock()
	f.calls++
	hang, err := f.hang, f.err
	f.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return err
}

func (f *fault) counts() (opened, closed, calls int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opened, f.closed, f.calls
}

func (f *fault) Name() string                       { return "slow" }
func (f *fault) Probe(context.Context) []api.Source { return nil }

func (f *fault) Open(context.Context, collector.Target) (collector.Reader, error) {
	err := f.enter()
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.opened++
	return &faulty{f, time.Now()}, nil
}

type faulty struct {
	f     *fault
	began time.Time
}

func (r *faulty) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	if err := r.f.enter(); err != nil {
		return err
	}
	out[api.ColReadBytes] = m.Time.Sub(r.began).Seconds()
	return nil
}

func (r *faulty) Close() error {
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	r.f.closed++
	return nil
}

// runFault starts a sampler whose second source may be faulty, and whose meter is m.
func runFault(t *testing.T, w *world, f *fault, m energy.Meter) (*sampler.Sampler, *window.Store) {
	t.Helper()
	store := window.New(window.Config{})
	s := sampler.New(sampler.Config{Cores: 4}, w, []collector.Collector{f, counter{w}}, w, m, store)
	serve(t, s.Run)
	synctest.Wait()
	return s, store
}

func modeller() energy.Meter { return energy.NewModeller(energy.Model{Idle: 40, Max: 120}) }

func TestASourceThatHangsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, f := newWorld(), &fault{}
		w.begin("a", 1)
		w.begin("b", 1)
		s, store := runFault(t, w, f, modeller())
		wait(3 * time.Second)
		release := make(chan struct{})
		f.set(release, nil)
		wait(20 * time.Second)
		// The page has its age, and the job that lacks it.
		if got := s.Snapshot().Silent; len(got) != 1 || got[0].Name != "slow" || !strings.HasPrefix(got[0].Reason, "does not answer since ") {
			t.Errorf("silent %+v", got)
		}
		if age := time.Since(s.Snapshot().At); age > 2*time.Second {
			t.Errorf("the last sample is %v old", age)
		}
		for _, id := range []string{"a", "b"} {
			win := see(t, store, id)
			last := win.Samples[len(win.Samples)-1]
			if got := last.Values[api.ColCPUSeconds]; got < 20 {
				t.Errorf("job %s has %v CPU seconds by the other source after 23 s", id, got)
			}
			if _, there := last.Values[api.ColReadBytes]; there {
				t.Errorf("job %s has a value of the source that hangs: %v", id, last.Values)
			}
			if len(win.Job.Absent) != 1 || win.Job.Absent[0].Name != "slow" {
				t.Errorf("job %s: absent %+v", id, win.Job.Absent)
			}
		}
		if _, _, calls := f.counts(); calls > 2+2*5+1 {
			t.Errorf("%d calls: it is asked again while it hangs", calls)
		}
		// A job ends and another begins meanwhile: nothing of the source is touched.
		w.end("a")
		w.begin("c", 1)
		wait(3 * time.Second)
		if win := see(t, store, "a"); !win.Job.Ended {
			t.Error("a job does not end because a source hangs")
		}
		if opened, closed, _ := f.counts(); opened != 2 || closed != 0 {
			t.Errorf("%d readers were opened and %d closed while it hangs", opened, closed)
		}
		f.set(nil, nil)
		close(release)
		wait(3 * time.Second)
		if got := s.Snapshot().Silent; len(got) != 0 {
			t.Errorf("silent %+v, and it answers", got)
		}
		if opened, closed, _ := f.counts(); opened != 3 || closed != 1 {
			t.Errorf("%d readers were opened and %d closed; want those of three jobs, and that of the one that ended", opened, closed)
		}
		for _, id := range []string{"b", "c"} {
			win := see(t, store, id)
			if _, there := win.Samples[len(win.Samples)-1].Values[api.ColReadBytes]; !there || len(win.Job.Absent) != 0 {
				t.Errorf("job %s lacks a source that answers again: %+v", id, win.Job.Absent)
			}
		}
	})
}

func TestASourceThatBecomesUnreadableIsMissingAndNotConstant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, f := newWorld(), &fault{}
		w.begin("a", 1)
		s, store := runFault(t, w, f, modeller())
		wait(3 * time.Second)
		before := s.Snapshot().Stats.ReadErrors
		f.set(nil, fs.ErrPermission)
		wait(3 * time.Second)
		win := see(t, store, "a")
		last := win.Samples[len(win.Samples)-1].Values
		if _, there := last[api.ColReadBytes]; there || last[api.ColCPUSeconds] < 5 {
			t.Errorf("%v; want what the others tell, and no bytes", last)
		}
		if s.Snapshot().Stats.ReadErrors <= before {
			t.Error("no error was counted")
		}
		f.set(nil, nil)
		wait(time.Second)
		w.end("a")
		wait(2 * time.Second)
		win = see(t, store, "a")
		if got := win.Samples[len(win.Samples)-1]; !got.Ended || got.Values[api.ColReadBytes] < 6 {
			t.Errorf("the last sample %+v lacks what was known", got)
		}
	})
}

// hanging is a meter that hangs on request and counts 10 W.
type hanging struct {
	energy.Meter
	*fault
	last            time.Time
	joules, settled float64
}

func (h *hanging) Source() string         { return energy.RAPL }
func (h *hanging) Base() energy.Component { return energy.Package }

func (h *hanging) Read(context.Context, time.Duration) error {
	if err := h.enter(); err != nil {
		return err
	}
	now, was := time.Now(), h.last
	if h.last = now; !was.IsZero() {
		h.joules += 10 * now.Sub(was).Seconds()
	}
	return nil
}

func (h *hanging) Settle(energy.Activity) (energy.Split, bool) {
	joules := h.joules - h.settled
	h.settled = h.joules
	return energy.Split{Total: joules, Parts: []energy.Part{{Component: energy.Package, Total: joules}}}, joules > 0
}

func TestAMeterThatHangsHoldsUpNoCounterAndLosesNoJoule(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, m := newWorld(), &hanging{Meter: modeller(), fault: &fault{}}
		w.begin("a", 1)
		s, store := runFault(t, w, &fault{}, m)
		wait(5 * time.Second)
		release := make(chan struct{})
		m.set(release, nil)
		wait(10 * time.Second)
		if got := s.Snapshot(); len(got.Silent) != 1 || got.Silent[0].Name != "energy" || !strings.Contains(got.Silent[0].Reason, "does not answer") {
			t.Errorf("silent %+v", got.Silent)
		}
		win := see(t, store, "a")
		if got := win.Samples[len(win.Samples)-1].Values[api.ColCPUSeconds]; got < 12 {
			t.Errorf("%v CPU seconds after 15 s", got)
		}
		m.set(nil, nil)
		close(release)
		wait(5 * time.Second)
		got, elapsed := s.Snapshot(), m.last.Sub(w.start).Seconds()
		if total := got.Book.Node.Total(); total < 10*elapsed-1e-6 || total > 10*elapsed+1e-6 || len(got.Silent) != 0 {
			t.Errorf("%v J in %v s at 10 W, silent %+v", total, elapsed, got.Silent)
		}
	})
}
