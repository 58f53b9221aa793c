package sampler_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// zoned is a meter whose counter may be unreadable, or hang.
type zoned struct {
	*energy.Modeller
	t *testing.T

	mu     sync.Mutex
	hang   chan struct{}
	err    error
	within bool // a reading is on its way
}

func (z *zoned) Source() string { return energy.RAPL }

func (z *zoned) set(hang chan struct{}, err error) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.hang, z.err = hang, err
}

func (z *zoned) Read(context.Context, time.Duration) error {
	z.mu.Lock()
	hang, err := z.hang, z.err
	z.within = true
	z.mu.Unlock()
	if hang != nil {
		<-hang
	}
	z.mu.Lock()
	z.within = false
	z.mu.Unlock()
	return err
}

// Base reads what Read writes, as that of powercap does.
func (z *zoned) Base() energy.Component {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.within {
		z.t.Error("the meter is asked what it counts while a reading of it hangs")
	}
	return energy.Package
}

func (z *zoned) IdleWatts() (float64, string) { return 40, "modelled" }

func runZoned(t *testing.T, w *world, z *zoned) (*sampler.Sampler, *window.Store, *bytes.Buffer) {
	t.Helper()
	store, out := window.New(window.Config{}), &bytes.Buffer{}
	log := slog.New(slog.NewTextHandler(out, nil)) // the sampler's goroutine alone writes it
	s := sampler.New(sampler.Config{Cores: 4, Logger: log}, w, []collector.Collector{counter{w}}, w, z, store)
	serve(t, s.Run)
	synctest.Wait()
	return s, store, out
}

// lumpy shows each second's 100 J at once, a moment before its end.
type lumpy struct {
	*energy.Modeller
	from  time.Time
	shown float64
}

func (l *lumpy) Settle(energy.Activity) (energy.Split, bool) {
	was := l.shown
	l.shown = 100 * (time.Since(l.from) + 200*time.Microsecond).Truncate(time.Second).Seconds()
	p := energy.Part{Component: energy.Node, Package: energy.Whole, Total: l.shown - was}
	return energy.Split{Total: p.Total, Parts: []energy.Part{p}}, true
}

// late is a source of which one reading takes nearly two intervals: two ticks come at once.
type late struct {
	collector.Static
	at time.Time
}

func (*late) Name() string { return "late" }

func (*late) Probe(context.Context) []api.Source { return nil }

func (l *late) Open(context.Context, collector.Target) (collector.Reader, error) { return l, nil }

func (l *late) Read(context.Context, collector.Moment, collector.Values) error {
	if now := time.Now(); now.After(l.at) && now.Sub(l.at) < time.Second {
		time.Sleep(1999500 * time.Microsecond)
	}
	return nil
}

// In an interval of no length the meter may show the joules of a whole one: at that rate a mark
// would have a thousand times what the job takes.
func TestAMarkAfterAShortIntervalIsNotFarAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, store := newWorld(), window.New(window.Config{})
		w.pids[77] = local("a")
		w.begin("a", 1)
		began := time.Now()
		m := &lumpy{Modeller: energy.NewModeller(energy.Model{}), from: began}
		s := sampler.New(sampler.Config{Cores: 4}, w, []collector.Collector{counter{w}, &late{at: began.Add(4900 * time.Millisecond)}}, w, m, store)
		serve(t, s.Run)
		for range 10 {
			wait(900 * time.Millisecond)
			if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1}); err != nil {
				t.Fatal(err)
			}
			samples := see(t, store, "a").Samples
			got, want := samples[len(samples)-1].Values[api.ColJoules], 100*time.Since(began).Seconds()
			if got < want-200 || got > want+200 {
				t.Errorf("%v J after %v, want about %v", got, time.Since(began), want)
			}
		}
	})
}

func TestWhileTheMeterFailsJoulesAreMissingAndItIsSaidWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("a")
		w.begin("a", 1)
		z := &zoned{Modeller: energy.NewModeller(energy.Model{Idle: 40, Max: 120}), t: t}
		s, store, log := runZoned(t, w, z)
		epoch := 0
		joules := func() (tick, mark bool, last float64) {
			t.Helper()
			epoch++
			if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: epoch}); err != nil {
				t.Fatal(err)
			}
			samples := see(t, store, "a").Samples
			_, tick = samples[len(samples)-2].Values[api.ColJoules]
			last, mark = samples[len(samples)-1].Values[api.ColJoules]
			if samples[len(samples)-1].Mark == nil || samples[len(samples)-1].Values[api.ColCPUSeconds] == 0 {
				t.Fatalf("the last sample is %+v, want the mark with its other columns", samples[len(samples)-1])
			}
			return tick, mark, last
		}
		wait(5500 * time.Millisecond)
		tick, mark, before := joules()
		if !tick || !mark || len(s.Snapshot().Silent) != 0 {
			t.Errorf("joules at the tick %v, at the mark %v; down %+v", tick, mark, s.Snapshot().Silent)
		}
		z.set(nil, fmt.Errorf("powercap: package-0: read energy_uj: %w", syscall.EIO))
		wait(time.Minute)
		if tick, mark, _ = joules(); tick || mark {
			t.Errorf("while the zone cannot be read: joules at the tick %v, at the mark %v", tick, mark)
		}
		down := s.Snapshot().Silent
		if len(down) != 1 || down[0].Name != "energy/rapl" || down[0].Reason != "powercap: package-0: read energy_uj: input/output error" {
			t.Errorf("down %+v", down)
		}
		if n := strings.Count(log.String(), "msg=trouble"); n != 1 || !strings.Contains(log.String(), "input/output error") {
			t.Errorf("told %d times: %s", n, log)
		}
		z.set(nil, nil)
		wait(time.Second)
		tick, mark, after := joules()
		if !tick || !mark || len(s.Snapshot().Silent) != 0 || !strings.Contains(log.String(), "no trouble any more") {
			t.Errorf("afterwards: tick %v, mark %v, down %+v", tick, mark, s.Snapshot().Silent)
		}
		if want := before + 61*30; after < want-1 || after > want+1 { // 20 W busy, a quarter of 40 W idle
			t.Errorf("%v J after %v, want those of the minute too: %v", after, before, want)
		}
	})
}

func TestAJobThatEndsWhileTheMeterFailsHasNoJoules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("a", 1)
		z := &zoned{Modeller: energy.NewModeller(energy.Model{Idle: 40, Max: 120}), t: t}
		_, store, _ := runZoned(t, w, z)
		wait(5500 * time.Millisecond)
		z.set(nil, syscall.EIO)
		wait(time.Minute)
		w.end("a")
		wait(2 * time.Second)
		z.set(nil, nil)
		wait(2 * time.Second)
		last := store.Latest()[0]
		if v, known := store.Named(last)[api.ColJoules]; !last.Job.Ended || known {
			t.Errorf("ended %v with %v J, of which a minute is missing", last.Job.Ended, v)
		}
	})
}

func TestAMeterThatHangsIsAskedNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("a", 1)
		z := &zoned{Modeller: energy.NewModeller(energy.Model{Idle: 40, Max: 120}), t: t}
		s, store, _ := runZoned(t, w, z)
		wait(3 * time.Second)
		release := make(chan struct{})
		z.set(release, nil)
		wait(10 * time.Second)
		if got := silent(s); len(got) != 1 || got[0] != "energy" || s.Snapshot().Base != energy.Package {
			t.Errorf("silent %v, base %s", got, s.Snapshot().Base)
		}
		samples := see(t, store, "a").Samples
		if v, there := samples[len(samples)-1].Values[api.ColJoules]; there {
			t.Errorf("%v J while the meter hangs", v)
		}
		z.set(nil, nil)
		close(release)
		wait(2 * time.Second)
		if got := silent(s); len(got) != 0 {
			t.Errorf("silent %v", got)
		}
	})
}
