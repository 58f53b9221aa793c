package sampler_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// chooser is a counter that counts a choice of events, which the world's lock guards.
type chooser struct {
	counter
	choice *choice
}

type choice struct {
	counted []string
	absent  []api.Source
	cycles  float64
	err     error
}

func (c chooser) Open(ctx context.Context, t collector.Target) (collector.Reader, error) {
	r, err := c.counter.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	return choosing{r, c}, nil
}

type choosing struct {
	collector.Reader
	of chooser
}

func (r choosing) Read(ctx context.Context, m collector.Moment, out collector.Values) error {
	err := r.Reader.Read(ctx, m, out)
	r.of.w.mu.Lock()
	defer r.of.w.mu.Unlock()
	out[api.PerfEvent("cycles")] = r.of.choice.cycles
	return errors.Join(err, r.of.choice.err)
}

func (r choosing) Events() ([]string, []api.Source) {
	r.of.w.mu.Lock()
	defer r.of.w.mu.Unlock()
	return r.of.choice.counted, r.of.choice.absent
}

func TestTheSchemaSaysWhichEventsOfAJobAreCounted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("7", 1)
		missing := []api.Source{{Name: "perf/branches", Support: api.Unsupported, Reason: "no descriptors"}}
		c := chooser{counter{w}, &choice{counted: []string{"cycles", "instructions"}, cycles: 5}}
		store := window.New(window.Config{})
		s := sampler.New(sampler.Config{Cores: 4}, w, []collector.Collector{c}, w, energy.NewModeller(energy.Model{Idle: 40, Max: 120}), store)
		serve(t, s.Run)
		wait(1500 * time.Millisecond)
		win := see(t, store, "7")
		if win.Schema != "perf/1:cycles,instructions" || len(win.Job.Absent) != 0 {
			t.Errorf("schema %q, absent %+v", win.Schema, win.Job.Absent)
		}
		if got := win.Samples[len(win.Samples)-1].Values[api.PerfEvent("cycles")]; got != 5 {
			t.Errorf("%v cycles, want 5", got)
		}
		// What is not known at a moment is missing from that sample, and held elsewhere.
		w.change(func() { c.choice.cycles = math.NaN() })
		wait(time.Second)
		win = see(t, store, "7")
		if got, ok := win.Samples[len(win.Samples)-1].Values[api.PerfEvent("cycles")]; ok {
			t.Errorf("%v cycles, which are not known", got)
		}
		if got := store.Named(store.Latest()[0])[api.PerfEvent("cycles")]; got != 5 {
			t.Errorf("the newest that is known are %v cycles, want 5", got)
		}
		w.change(func() { c.choice.cycles = 9 })
		wait(time.Second)
		win = see(t, store, "7")
		if got := win.Samples[len(win.Samples)-1].Values[api.PerfEvent("cycles")]; got != 9 {
			t.Errorf("%v cycles, want 9", got)
		}
		// A group that cannot be counted any more leaves the schema.
		w.change(func() {
			c.choice.counted, c.choice.absent, c.choice.err = []string{"cycles"}, missing, errors.New("group cpu-2")
		})
		wait(time.Second)
		win = see(t, store, "7")
		if win.Schema != "perf/1:cycles" {
			t.Errorf("schema %q", win.Schema)
		}
		if diff := cmp.Diff(missing, win.Job.Absent); diff != "" {
			t.Errorf("absent (-want +got):\n%s", diff)
		}
	})
}
