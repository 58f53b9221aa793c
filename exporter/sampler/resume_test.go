package sampler_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

func joules(t *testing.T, store *window.Store, id string) float64 {
	t.Helper()
	samples := see(t, store, id).Samples
	return samples[len(samples)-1].Values[api.ColJoules]
}

func TestAJobsJoulesSurviveARestartOfTheExporter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		alter func(*sampler.State, *sampler.Config)
		kept  bool
	}{
		{"as it was", func(*sampler.State, *sampler.Config) {}, true},
		{"after a boot", func(_ *sampler.State, c *sampler.Config) { c.Boot = "another" }, false},
		{"when the cgroup is another one of its name", func(s *sampler.State, _ *sampler.Config) { s.Jobs[0].Inode++ }, false},
		{"when another job has the cgroup", func(s *sampler.State, _ *sampler.Config) { s.Jobs[0].Job.ID = "8" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}
				s, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
				wait(10*time.Second + time.Millisecond)
				before, saved := joules(t, store, "42"), s.Snapshot().State
				if len(saved.Jobs) != 1 || before < 100 {
					t.Fatalf("saved %+v after %v J", saved, before)
				}
				w.change(func() { w.jobs[slurm("42")].attempt = 0 }) // it is not told any more
				cfg := sampler.Config{Keep: true, Boot: "this"}
				tc.alter(&saved, &cfg)
				cfg.Earlier = saved
				_, again := runWith(t, w, cfg)
				wait(10*time.Second + time.Millisecond)
				got, want := joules(t, again, "42"), 2*before
				if !tc.kept {
					want = before
				}
				if math.Abs(got-want) > 0.02*want {
					t.Errorf("%v J after as long again, %v J before; want %v", got, before, want)
				}
				if attempt := see(t, again, "42").Job.Attempt; tc.kept && attempt != 3 {
					t.Errorf("attempt %d, want 3 as before", attempt)
				}
			})
		})
	}
}

func TestTheJoulesOfAJobWithoutACgroupGoOnWithItsOldestProcess(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		alter func(*world, *sampler.State, *sampler.Config)
		kept  bool
	}{
		{"as it was", func(*world, *sampler.State, *sampler.Config) {}, true},
		{"with a process more", func(w *world, _ *sampler.State, _ *sampler.Config) {
			w.jobs[local("7")].pids, w.births[2] = []int{2, 1}, 300
		}, true},
		{"when another process has its id", func(w *world, _ *sampler.State, _ *sampler.Config) { w.births[1] = 200 }, false},
		{"when another job has the process", func(_ *world, s *sampler.State, _ *sampler.Config) { s.Jobs[0].Job.ID = "8" }, false},
		{"after a boot", func(_ *world, _ *sampler.State, c *sampler.Config) { c.Boot = "another" }, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.births = map[int]uint64{1: 100, 9: 50}
				w.jobs[local("7")] = &burn{from: time.Now(), cores: 2, pids: []int{1, 9}}
				s, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
				wait(5 * time.Second)
				w.change(func() { w.jobs[local("7")].pids = []int{1} }) // what started it has ended
				wait(5*time.Second + time.Millisecond)
				before, saved := joules(t, store, "7"), s.Snapshot().State
				if len(saved.Jobs) != 1 || saved.Jobs[0].Job.Cgroup != "" || before < 100 {
					t.Fatalf("saved %+v after %v J", saved, before)
				}
				cfg := sampler.Config{Keep: true, Boot: "this"}
				tc.alter(w, &saved, &cfg)
				cfg.Earlier = saved
				_, again := runWith(t, w, cfg)
				wait(10*time.Second + time.Millisecond)
				got, want := joules(t, again, "7"), 2*before
				if !tc.kept {
					want = before
				}
				if math.Abs(got-want) > 0.02*want {
					t.Errorf("%v J after as long again, %v J before; want %v", got, before, want)
				}
			})
		})
	}
}

// restarted is the world of an exporter that starts again and has not yet found a job, which had used joules before.
func restarted(t *testing.T) (w *world, b *burn, before float64, saved sampler.State) {
	t.Helper()
	w = newWorld()
	b = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": t.TempDir()}, confirmed: true, attempt: 1}
	w.jobs[slurm("42")] = b
	s, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
	wait(10*time.Second + time.Millisecond)
	before, saved = joules(t, store, "42"), s.Snapshot().State
	w = newWorld() // of the next exporter
	w.begin("7", 1)
	return w, b, before, saved
}

// One that is found late, as where its user's directory was not readable at first.
// cut is a world in which the exporter is stopped in the middle of a look for jobs.
type cut struct {
	*world
	stop func()
	now  atomic.Bool
}

func (c *cut) Scan(ctx context.Context) []attrib.Found {
	out := c.world.Scan(ctx)
	if c.now.Load() {
		c.stop()
		for i := range out {
			out[i].Dirs = maps.Clone(out[i].Dirs)
			delete(out[i].Dirs, "unified") // it was not looked at any more
		}
	}
	return out
}

func TestAStopInTheMiddleOfALookForJobsLosesNoJoules(t *testing.T) {
	t.Parallel()
	v1, v2 := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &cut{world: newWorld()}
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"cpuacct": v1, "unified": v2}, confirmed: true, attempt: 1}
		cfg := sampler.Config{Keep: true, Boot: "this", Cores: 4}
		s := sampler.New(cfg, w, []collector.Collector{counter{w.world}}, w, energy.NewModeller(energy.Model{Idle: 40, Max: 120}), window.New(window.Config{}))
		ctx, stop := context.WithCancel(t.Context())
		w.stop = stop
		go func() { _ = s.Run(ctx) }() // it returns none
		wait(10*time.Second + time.Millisecond)
		w.now.Store(true)
		wait(time.Second)
		cfg.Earlier = s.Snapshot().State
		if got := cfg.Earlier.Jobs[0].Job.Cgroup; got != v2 || cfg.Earlier.At.Before(w.start.Add(10100*time.Millisecond)) {
			t.Errorf("the job is in %s at %v, want %s as before the stop", got, cfg.Earlier.At.Sub(w.start), v2)
		}
		again, _ := runWith(t, w.world, cfg)
		if before, after := cfg.Earlier.Jobs[0].Joules.Total(), again.Snapshot().State.Jobs[0].Joules.Total(); after < before || before == 0 {
			t.Errorf("%v J after %v J", after, before)
		}
	})
}

// A job is often seen before the last of its cgroups is made, and which of them stands for it
// changes then.
func TestAJobWhoseCgroupsCameOneByOneKeepsItsJoules(t *testing.T) {
	t.Parallel()
	v1, v2 := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		b := &burn{from: time.Now(), cores: 2, dirs: map[string]string{"cpuacct": v1}, confirmed: true, attempt: 1}
		w.jobs[slurm("42")] = b
		cfg := sampler.Config{Keep: true, Boot: "this"}
		s, _ := runWith(t, w, cfg)
		wait(time.Second)
		w.change(func() { b.dirs = map[string]string{"cpuacct": v1, "unified": v2} })
		wait(10 * time.Second)
		cfg.Earlier = s.Snapshot().State
		again, _ := runWith(t, w, cfg)
		if before, after := cfg.Earlier.Jobs[0].Joules.Total(), again.Snapshot().State.Jobs[0].Joules.Total(); len(again.Snapshot().State.Jobs) != 1 || after < before || before == 0 {
			t.Errorf("%v J after %v J", after, before)
		}
	})
}

func TestAJobThatIsFoundLateAfterARestartPaysForNothingTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, b, before, saved := restarted(t)
		_, again := runWith(t, w, sampler.Config{Keep: true, Boot: "this", Earlier: saved})
		wait(10*time.Second + time.Millisecond)
		w.change(func() { w.jobs[slurm("42")] = b })
		wait(5 * time.Second)
		samples := see(t, again, "42").Samples
		if len(samples) < 3 {
			t.Fatalf("%d samples", len(samples))
		}
		first := samples[0].Values[api.ColJoules]
		if math.Abs(first-before) > 0.02*before {
			t.Errorf("the first sample has %v J, want the %v J of before", first, before)
		}
		for i, later := range samples[1:] {
			if got := later.Values[api.ColJoules] - samples[i].Values[api.ColJoules]; got > before/5 { // it would take them from the other job
				t.Errorf("%v J in interval %d, after %v J in 10 s", got, i, before)
			}
		}
	})
}

func TestAJobThatThereWasNoRoomForKeepsItsEarlierJoules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, b, before, saved := restarted(t)
		small := window.New(window.Config{Jobs: 1})
		runIn(t, w, small, sampler.Config{Keep: true, Boot: "this", Earlier: saved})
		wait(3 * time.Second)
		w.change(func() { w.jobs[slurm("42")] = b })
		wait(3 * time.Second)
		if _, ok := small.Window("42", 0, 0, 0, func(api.Job) bool { return true }); ok {
			t.Fatal("there was room")
		}
		w.end("7")
		wait(5 * time.Second)
		if got := joules(t, small, "42"); got < before {
			t.Errorf("%v J in the end, want the %v J of before in it", got, before)
		}
	})
}

func TestAJobThatThereIsNoRoomForIsRefusedOnceAndPaysFromWhenThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, small := newWorld(), window.New(window.Config{Jobs: 1})
		w.others = 2
		w.begin("7", 1)
		s := runIn(t, w, small, sampler.Config{})
		w.begin("8", 1)
		wait(20 * time.Second)
		if n := s.Snapshot().Stats.JobsRefused; n != 1 {
			t.Errorf("%d jobs refused, want 1", n)
		}
		w.end("7")
		wait(5 * time.Second)
		samples := see(t, small, "8").Samples
		used := func(i int) float64 { return samples[i].Values[api.ColJoules] - samples[i-1].Values[api.ColJoules] }
		if used(1) > 1.5*used(3) || used(3) == 0 {
			t.Errorf("%v J in its first interval and %v J in its third", used(1), used(3))
		}
	})
}

func TestTheLastValuesOfAJobOutliveTheExporter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("7", 1)
		s, store := runWith(t, w, sampler.Config{Keep: true})
		wait(5 * time.Second)
		w.end("7")
		wait(3 * time.Second)
		want := joules(t, store, "7")
		saved := s.Snapshot().State
		if len(saved.Jobs) != 1 || saved.Jobs[0].Ended.IsZero() || want <= 0 {
			t.Fatalf("saved %+v after %v J", saved, want)
		}
		next, again := runWith(t, newWorld(), sampler.Config{Keep: true, Earlier: saved})
		if got := next.Snapshot(); len(got.State.Jobs) != 1 {
			t.Errorf("state %+v right after the start, want what was saved", got.State)
		}
		wait(2 * time.Second)
		win := see(t, again, "7")
		if !win.Job.Ended || joules(t, again, "7") != want || len(charged(again)) != 1 {
			t.Errorf("job %+v with %v J, want it ended with %v J", win.Job, joules(t, again, "7"), want)
		}
		wait(20 * time.Minute) // as long as it is kept
		if _, ok := again.Window("7", 0, 0, 0, func(api.Job) bool { return true }); ok {
			t.Error("the job is still there")
		}
	})
}

// perfCgroups records what is asked of it.
type perfCgroups struct {
	tree    string // empty = v2
	mu      sync.Mutex
	dir     string
	fail    error
	put     map[string]int
	removed []string
}

func (l *perfCgroups) Hierarchy() string { return cmp.Or(l.tree, "unified") }

func (l *perfCgroups) Put(name string, pids []int) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put[name] += len(pids)
	return l.dir, l.fail
}

func (l *perfCgroups) Remove(name string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.removed = append(l.removed, name)
	return nil
}

func TestSchedulersJobsWithoutAV2CgroupGetAPerfCgroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := &perfCgroups{dir: "/leaf", fail: errors.New("one process is another kernel's"), put: map[string]int{}}
		key := slurm("42")
		w.jobs[key] = &burn{from: time.Now(), confirmed: true, attempt: 1}
		w.jobs[slurm("43")] = &burn{from: time.Now(), confirmed: true, dirs: map[string]string{"unified": "/43"}}
		w.jobs[attrib.Key{Manager: attrib.Local, ID: "7", Attempt: 1}] = &burn{from: time.Now()}
		runWith(t, w, sampler.Config{PerfCgroups: l})
		wait(3 * time.Second)
		w.change(func() { delete(w.jobs, key) })
		wait(3 * time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.put["slurm-42"] < 5 || len(l.put) != 1 {
			t.Errorf("put %v, want slurm-42 alone and again and again", l.put)
		}
		if len(l.removed) != 1 || l.removed[0] != "slurm-42" {
			t.Errorf("removed %v, want slurm-42", l.removed)
		}
	})
}

// Nomad's exec makes the v2 cgroup after those of v1, in which no one is before it.
func TestAJobThatGetsAV2CgroupLeavesItsLeaf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		l := &perfCgroups{dir: "/leaf", put: map[string]int{}}
		key := nomad("5b2c7a94-0000-4000-8000-000000000001.train")
		b := &burn{from: time.Now(), confirmed: true, empty: true}
		w.jobs[key] = b
		runWith(t, w, sampler.Config{PerfCgroups: l})
		wait(time.Second)
		if len(l.put) > 0 {
			t.Errorf("put %v while no one was in the job", l.put)
		}
		w.change(func() { b.empty = false })
		wait(time.Second)
		w.change(func() { b.dirs = map[string]string{"unified": "/nomad/5b2c.train"} })
		wait(time.Second)
		l.mu.Lock()
		put := l.put["nomad-"+key.ID]
		l.mu.Unlock()
		wait(2 * time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		if put == 0 || l.put["nomad-"+key.ID] != put || len(l.removed) != 1 {
			t.Errorf("put %d and then %v, removed %v; want nothing put after it was removed once", put, l.put, l.removed)
		}
	})
}

// One that is killed perfCgroups what the journal kept at the last tick, and not the state that
// was saved some time before.
func TestAnExporterThatIsKilledSetsNoCounterBack(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}
		var mu sync.Mutex
		var kept sampler.State
		journal := func(s sampler.State) error {
			mu.Lock()
			defer mu.Unlock()
			kept = s
			return nil
		}
		first, store := runWith(t, w, sampler.Config{Keep: true, Boot: "this", Journal: journal})
		wait(10 * time.Second)
		saved := first.Snapshot().State // as each ten seconds
		for range 5 {
			wait(1700 * time.Millisecond)
			shown := store.Named(store.Latest()[0])[api.ColJoules]
			mu.Lock()
			earlier := kept
			mu.Unlock()
			if len(earlier.Jobs) != 1 || earlier.Jobs[0].Joules.Total() < shown || earlier.Jobs[0].Joules.Total() <= saved.Jobs[0].Joules.Total() {
				t.Fatalf("the journal has %+v, and %v J were shown", earlier.Jobs, shown)
			}
			_, again := runWith(t, w, sampler.Config{Keep: true, Boot: "this", Earlier: earlier})
			wait(1100 * time.Millisecond)
			if got := again.Named(again.Latest()[0])[api.ColJoules]; got < shown {
				t.Errorf("%v J after %v J that the one before had shown", got, shown)
			}
		}
	})
}

// One that is stopped between two samples leaves what was used since the last one, too.
func TestAnExporterThatIsStoppedSettlesTheIntervalBefore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 1}
		cfg := sampler.Config{Keep: true, Boot: "this", Interval: 10 * time.Second, Cores: 4}
		s := sampler.New(cfg, w, []collector.Collector{counter{w}}, w, energy.NewModeller(energy.Model{Idle: 40, Max: 120}), window.New(window.Config{}))
		ctx, stop := context.WithCancel(t.Context())
		go func() { _ = s.Run(ctx) }() // it returns none
		wait(10*time.Second + time.Millisecond)
		before := s.Snapshot().State.Jobs[0].Joules.Total()
		wait(9 * time.Second)
		stop()
		synctest.Wait()
		if got, want := s.Snapshot().State.Jobs[0].Joules.Total(), 1.9*before; math.Abs(got-want) > 0.01*want {
			t.Errorf("%v J are left after 19 s, %v J after 10 s; want %v", got, before, want)
		}
	})
}

// A second restart may come before the job is found.
func TestWhatIsNotFoundYetIsPassedOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true, attempt: 3}
		seldom := sampler.Config{Keep: true, Boot: "this", Interval: 10 * time.Second, Discover: 10 * time.Second}
		first, _ := runWith(t, w, seldom)
		wait(25 * time.Second)
		saved := first.Snapshot().State
		seldom.Earlier = saved
		second, _ := runWith(t, newWorld(), seldom)
		wait(11 * time.Second)
		again := second.Snapshot().State
		if len(again.Jobs) != 1 || again.Jobs[0].Joules != saved.Jobs[0].Joules {
			t.Errorf("%+v is passed on, want %+v", again.Jobs, saved.Jobs)
		}
		wait(20 * time.Minute)
		if left := second.Snapshot().State.Jobs; len(left) != 0 {
			t.Errorf("%+v after twenty minutes", left)
		}
	})
}

func TestAJournalThatCannotBeWrittenStopsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("a", 1)
		_, store := runWith(t, w, sampler.Config{Keep: true, Journal: func(sampler.State) error { return errors.New("the disk is full") }})
		wait(5 * time.Second)
		if got := joules(t, store, "a"); got < 100 {
			t.Errorf("%v J after 5 s", got)
		}
	})
}
