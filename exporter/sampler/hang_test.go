package sampler_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// lost is a world in which looking for jobs, or reading the machine, may hang.
type lost struct {
	*world
	scans, cpus *fault
}

func (l lost) Scan(ctx context.Context) []attrib.Found {
	_ = l.scans.enter() // it only hangs
	return l.world.Scan(ctx)
}

func (l lost) CPU() (node.CPU, error) {
	_ = l.cpus.enter() // it only hangs
	return l.world.CPU()
}

func runLost(t *testing.T, l lost, workers map[string]*collector.Worker) (*sampler.Sampler, *window.Store) {
	t.Helper()
	store := window.New(window.Config{})
	s := sampler.New(sampler.Config{Cores: 4, Workers: workers}, l, []collector.Collector{counter{l.world}}, l, modeller(), store)
	serve(t, s.Run)
	synctest.Wait()
	return s, store
}

func silent(s *sampler.Sampler) (names []string) {
	for _, l := range s.Snapshot().Silent {
		names = append(names, l.Name)
	}
	return names
}

func TestALookForJobsThatHangsEndsNoneAndStopsNoCounter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lost{newWorld(), &fault{}, &fault{}}
		l.begin("a", 1)
		s, store := runLost(t, l, nil)
		wait(3 * time.Second)
		release := make(chan struct{})
		l.scans.set(release, nil)
		wait(10 * time.Second)
		if got := silent(s); len(got) != 1 || got[0] != "attrib" {
			t.Errorf("silent %v", got)
		}
		l.begin("b", 1)
		wait(3 * time.Second)
		win := see(t, store, "a")
		if got := win.Samples[len(win.Samples)-1].Values[api.ColCPUSeconds]; win.Job.Ended || got < 15 {
			t.Errorf("%v CPU seconds after 16 s, %+v", got, win.Job)
		}
		if err := s.Mark(t.Context(), who(1, 1000), api.Report{Epoch: 1}); err == nil || errors.Is(err, sampler.ErrNoJob) {
			t.Errorf("a mark is answered by %v; want that it is unknown now", err)
		}
		l.scans.set(nil, nil)
		close(release)
		wait(2 * time.Second)
		see(t, store, "b")
		if got := silent(s); len(got) != 0 {
			t.Errorf("silent %v", got)
		}
	})
}

func TestAMachineThatDoesNotAnswerTakesItsOwnColumnsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lost{newWorld(), &fault{}, &fault{}}
		l.begin("a", 1)
		s, store := runLost(t, l, nil)
		wait(3 * time.Second)
		release := make(chan struct{})
		l.cpus.set(release, nil)
		wait(10 * time.Second)
		win := see(t, store, "a")
		last := win.Samples[len(win.Samples)-1].Values
		if _, there := last[api.ColNodeBusy]; there || last[api.ColCPUSeconds] < 10 {
			t.Errorf("%v; want the job's CPU seconds and not the node's", last)
		}
		if got := silent(s); len(got) != 1 || got[0] != "node" {
			t.Errorf("silent %v", got)
		}
		before := s.Snapshot().Covered
		l.cpus.set(nil, nil)
		close(release)
		wait(3 * time.Second)
		if now := s.Snapshot(); now.Covered < before+10 || len(now.Silent) != 0 {
			t.Errorf("%v s of energy after %v, silent %v", now.Covered, before, now.Silent)
		}
	})
}

func TestASourceThatHungBeforeIsAskedWhenItHasAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, answered := lost{newWorld(), &fault{}, &fault{}}, make(chan struct{})
		l.begin("a", 1)
		busy := collector.NewWorker("attrib")
		if err := busy.Each(1, func(int) { <-answered }); !errors.Is(err, collector.ErrSilent) {
			t.Fatal(err)
		}
		s, store := runLost(t, l, map[string]*collector.Worker{"attrib": busy})
		wait(5 * time.Second)
		if got := silent(s); len(got) != 1 || len(store.Jobs(func(api.Job) bool { return true })) != 0 {
			t.Errorf("silent %v", got)
		}
		if _, _, calls := l.scans.counts(); calls != 0 {
			t.Errorf("%d calls while an earlier one hangs", calls)
		}
		close(answered)
		wait(time.Second)
		see(t, store, "a")
	})
}

// slow is a source that takes more than a second for each job.
type slow struct{ counter }

func (c slow) Open(ctx context.Context, t collector.Target) (collector.Reader, error) {
	r, err := c.counter.Open(ctx, t)
	return slowly{r}, err
}

type slowly struct{ collector.Reader }

func (r slowly) Read(ctx context.Context, m collector.Moment, out collector.Values) error {
	time.Sleep(1500 * time.Millisecond)
	return r.Reader.Read(ctx, m, out)
}

func TestASourceThatGoesOnFromJobToJobIsSlowAndNotSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for _, id := range []string{"a", "b", "c", "d"} {
			w.begin(id, 1)
		}
		store := window.New(window.Config{})
		s := sampler.New(sampler.Config{Cores: 4}, w, []collector.Collector{slow{counter{w}}}, w, modeller(), store)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		wait(40 * time.Second)
		if got := silent(s); len(got) != 0 || s.Snapshot().Stats.ReadErrors > 0 {
			t.Errorf("silent %v, %d errors", got, s.Snapshot().Stats.ReadErrors)
		}
		for _, id := range []string{"a", "b", "c", "d"} {
			win := see(t, store, id)
			if got := win.Samples[len(win.Samples)-1].Values[api.ColCPUSeconds]; got < 20 {
				t.Errorf("job %s has %v CPU seconds", id, got)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
