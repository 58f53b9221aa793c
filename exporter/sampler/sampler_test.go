package sampler_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(worker); spec != "" {
		if err := work(spec); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// world is a node in virtual time: each job burns one core while it lives.
type world struct {
	mu     sync.Mutex
	start  time.Time
	others float64              // cores that no job uses
	jobs   map[attrib.Key]*burn // what the scanner finds
	pids   map[int]attrib.Key   // who is where
	births map[int]uint64       // when a process began; 0 = 1
	failed bool                 // node counters are unreadable
	scans  int
}

// change is how a test changes the world while the sampler runs.
func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

type burn struct {
	from  time.Time
	to    time.Time // zero = still
	cores float64   // of its cpuset
	dirs  map[string]string
	uid   uint32 // 0 = 1000

	birth     uint64 // of its cgroups
	attempt   int    // as the scheduler counts
	confirmed bool
	empty     bool  // no one is in it
	pids      []int // without a cgroup; nil = 1, which no counter reads
}

func (b *burn) cpu(now time.Time) float64 {
	if !b.to.IsZero() && now.After(b.to) {
		now = b.to
	}
	return max(now.Sub(b.from).Seconds(), 0)
}

func newWorld() *world {
	return &world{start: time.Now(), jobs: map[attrib.Key]*burn{}, pids: map[int]attrib.Key{}}
}

func (w *world) Scan(context.Context) []attrib.Found {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scans++
	var out []attrib.Found
	for key, b := range w.jobs {
		if b.to.IsZero() {
			pids := []int{1}
			if b.pids != nil {
				pids = b.pids
			}
			if b.empty {
				pids = nil
			}
			out = append(out, attrib.Found{
				Key: key, UID: cmp.Or(b.uid, 1000), HasUID: true, Dirs: b.dirs, Pids: pids,
				Birth: map[string]uint64{"unified": b.birth}, Attempt: b.attempt, Confirmed: b.confirmed,
			})
		}
	}
	return out
}

func (w *world) Locate(pid int, _ uint32) (attrib.Key, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, ok := w.pids[pid]
	return key, ok
}

// Started is 1 of all processes, unless births has another.
func (w *world) Started(pid int) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return cmp.Or(w.births[pid], 1)
}

// who is a process that began at 1.
func who(pid int, uid uint32) peercred.Caller { return peercred.Caller{PID: pid, UID: uid, Start: 1} }

func (w *world) User([]int) (uint32, bool) { return 1000, true }

func (w *world) CPU() (node.CPU, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failed {
		return node.CPU{}, errors.New("unreadable")
	}
	busy := w.others * time.Since(w.start).Seconds()
	for _, b := range w.jobs {
		busy += b.cpu(time.Now())
	}
	return node.CPU{Busy: busy}, nil
}

func (w *world) Load() (float64, error) { return 1, nil }

// counter is a collector that reads the world; its target's directory names the job.
type counter struct {
	w *world
}

func (c counter) Name() string { return "perf" }

func (c counter) Probe(context.Context) []api.Source { return nil }

func (c counter) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for key, b := range c.w.jobs {
		if dir := t.Dirs["unified"]; dir != "" && b.dirs["unified"] == dir || b.pids != nil && len(t.Dirs) == 0 {
			return reader{c.w, key}, nil
		}
	}
	return nil, collector.ErrUnsupported
}

type reader struct {
	w   *world
	key attrib.Key
}

func (r reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	b := r.w.jobs[r.key]
	out[api.ColTaskClock] = b.cpu(m.Time)
	if !b.to.IsZero() {
		return errors.New("the cgroup is gone") // perf's events answer, the rest does not
	}
	out[api.ColCPUSeconds] = b.cpu(m.Time)
	out[api.ColAllocatedCores] = b.cores
	return nil
}

func (r reader) Close() error { return nil }

func local(id string) attrib.Key { return attrib.Key{Manager: attrib.Local, ID: id, Attempt: 1} }

func (w *world) begin(id string, cores float64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[local(id)] = &burn{from: time.Now(), cores: cores, dirs: map[string]string{"unified": "/" + id}}
}

func (w *world) end(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs[local(id)].to = time.Now()
}

// run starts a sampler on the world; everything is in one bubble, so that the world
// may be changed whenever all goroutines wait.
func run(t *testing.T, w *world) (*sampler.Sampler, *window.Store) {
	t.Helper()
	return runWith(t, w, sampler.Config{})
}

func runWith(t *testing.T, w *world, cfg sampler.Config) (*sampler.Sampler, *window.Store) {
	t.Helper()
	store := window.New(window.Config{})
	return runIn(t, w, store, cfg), store
}

func runIn(t *testing.T, w *world, store *window.Store, cfg sampler.Config) *sampler.Sampler {
	t.Helper()
	meter := energy.NewModeller(energy.Model{Idle: 40, Max: 120})
	cfg.Cores = 4
	s := sampler.New(cfg, w, []collector.Collector{counter{w}}, w, meter, store)
	serve(t, s.Run)
	synctest.Wait()
	return s
}

func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func see(t *testing.T, store *window.Store, id string) api.Window {
	t.Helper()
	win, ok := store.Window(id, 0, 0, 0, func(api.Job) bool { return true })
	if !ok {
		t.Fatalf("job %s is not in the store", id)
	}
	return win
}

func TestSamplesEachSecondAndAtEachMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("7")
		s, store := run(t, w)
		wait(2100 * time.Millisecond)
		w.begin("7", 1)
		wait(3 * time.Second) // seen at 2.25 s, ticks at 3, 4 and 5 s
		read := time.Now().Add(-30 * time.Millisecond)
		if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1, Time: read}); err != nil {
			t.Fatal(err)
		}
		win := see(t, store, "7")
		if len(win.Samples) != 5 || win.Schema != api.SchemaSoftware {
			t.Fatalf("%d samples of schema %s, want 5: %+v", len(win.Samples), win.Schema, win.Samples)
		}
		for i, want := range []float64{0.15, 0.9, 1.9, 2.9, 3} {
			if got := win.Samples[i].Values[api.ColCPUSeconds]; math.Abs(got-want) > 1e-9 {
				t.Errorf("sample %d: %v CPU seconds, want %v", i, got, want)
			}
		}
		mark := win.Samples[4].Mark
		if mark == nil || mark.Epoch != 1 || !mark.Time.Equal(read) {
			t.Errorf("mark %+v, want epoch 1 at the time its line was read", mark)
		}
		// 40 W idle, a quarter of it held for 2.75 s (from when it was seen); 20 W a busy core.
		if got, want := win.Samples[3].Values[api.ColJoules], 10*2.75+20*2.9; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v J after 5 s, want %v", got, want)
		}
		if got, want := win.Samples[4].Values[api.ColJoules], 10*2.85+20*3; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v J at the mark, want %v", got, want)
		}
	})
}

func TestAJobThatEndsKeepsItsLastWorkAndTheBookCloses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.others = 0.5
		s, store := run(t, w)
		w.begin("a", 2)
		w.begin("b", 1)
		wait(5300 * time.Millisecond)
		w.end("a")
		wait(10 * time.Second)
		a, b := see(t, store, "a"), see(t, store, "b")
		last := a.Samples[len(a.Samples)-1]
		if !a.Job.Ended || !last.Ended || b.Job.Ended {
			t.Errorf("ended: a %v (sample %v), b %v", a.Job.Ended, last.Ended, b.Job.Ended)
		}
		if got := last.Values[api.ColCPUSeconds]; math.Abs(got-5.3) > 1e-9 {
			t.Errorf("a used %v CPU seconds, want 5.3: what it did after the last tick is in its task clock", got)
		}
		snap := s.Snapshot()
		sum := snap.Book.System.Total()
		for _, j := range charged(store) {
			sum += j.Total()
		}
		if node := snap.Book.Node.Total(); math.Abs(sum-node) > 1e-3*node || node < 15*40 {
			t.Errorf("jobs and system %v J, node %v J", sum, node)
		}
		if got := charged(store)[local("a")].Active; math.Abs(got-20*5.3) > 1e-6 {
			t.Errorf("a's active joules %v, want %v", got, 20*5.3)
		}
		if snap.Running != 1 {
			t.Errorf("%d jobs run, want 1", snap.Running)
		}
	})
}

func TestAJobOfASecondIsSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, store := run(t, w)
		wait(1010 * time.Millisecond)
		w.begin("short", 1)
		wait(900 * time.Millisecond)
		w.end("short")
		wait(2 * time.Second)
		win := see(t, store, "short")
		last := win.Samples[len(win.Samples)-1]
		if !win.Job.Ended || math.Abs(last.Values[api.ColTaskClock]-0.9) > 1e-9 {
			t.Errorf("ended %v, last sample %+v", win.Job.Ended, last)
		}
	})
}

func TestMarksAboveTheRateAreRecordedWithoutASnapshot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("7")
		w.begin("7", 1)
		s, store := run(t, w)
		for epoch := 1; epoch <= 25; epoch++ {
			if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: epoch}); err != nil {
				t.Fatal(err)
			}
		}
		bare, epochs := 0, 0
		for _, sample := range see(t, store, "7").Samples {
			if sample.Mark == nil {
				continue
			}
			epochs++
			if len(sample.Values) == 0 {
				bare++
			}
			if sample.Mark.Epoch != epochs || sample.Mark.Time.IsZero() {
				t.Errorf("mark %+v, want epoch %d with a time", sample.Mark, epochs)
			}
		}
		if epochs != 25 || bare != 5 {
			t.Errorf("%d marks, %d of them without a snapshot; want 25 and 5", epochs, bare)
		}
	})
}

func TestAMarkFromOutsideEveryJobIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[78] = local("gone")
		s, _ := run(t, w)
		for _, pid := range []int{77, 78} {
			if err := s.Mark(t.Context(), who(pid, 1000), api.Report{Epoch: 1}); !errors.Is(err, sampler.ErrNoJob) {
				t.Errorf("pid %d: got %v, want %v", pid, err, sampler.ErrNoJob)
			}
		}
		// A job that began just now is looked for at once.
		w.begin("7", 1)
		w.change(func() { w.pids[77] = local("7") })
		if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1}); err != nil {
			t.Error(err)
		}
	})
}

func TestReportsFromOutsideEveryJobDoNotMakeItLookMoreOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, _ := run(t, w)
		wait(260 * time.Millisecond) // just after a regular look
		before := 0
		w.change(func() { before = w.scans })
		var all sync.WaitGroup
		for range 200 {
			all.Go(func() {
				if err := s.Mark(t.Context(), who(99, 1000), api.Report{Epoch: 1}); !errors.Is(err, sampler.ErrNoJob) {
					t.Errorf("got %v, want %v", err, sampler.ErrNoJob)
				}
			})
		}
		all.Wait()
		w.change(func() {
			if got := w.scans - before; got != 1 {
				t.Errorf("200 reports at once made it look %d times, want 1", got)
			}
		})
	})
}

func TestAClaimToAFutureJobDoesNotCaptureItsCgroup(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[66] = local("7")
		w.jobs[local("7")] = &burn{from: time.Now(), uid: 666}
		s, store := run(t, w)
		wait(1500 * time.Millisecond)
		if err := s.Mark(t.Context(), who(66, 666), api.Report{Epoch: 40}); err != nil {
			t.Fatal(err)
		}
		w.begin("7", 1)
		wait(1300 * time.Millisecond)
		win := see(t, store, "7")
		if win.Job.UID != 1000 || win.Job.Cgroup != "/7" || win.Job.Ended {
			t.Errorf("job %+v, want one of user 1000 that runs in its cgroup", win.Job)
		}
		for _, sample := range win.Samples {
			if sample.Mark != nil {
				t.Errorf("the claimant's mark %+v is the job's", sample.Mark)
			}
		}
	})
}

func TestAJobGoesOnInACgroupOfItsOwnUser(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("7")
		w.jobs[local("7")] = &burn{from: time.Now()}
		s, store := run(t, w)
		if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		w.begin("7", 1)
		wait(300 * time.Millisecond)
		win := see(t, store, "7")
		marks := 0
		for _, sample := range win.Samples {
			if sample.Mark != nil {
				marks++
			}
		}
		if win.Job.Cgroup != "/7" || marks != 1 {
			t.Errorf("job %+v with %d marks, want its cgroup and 1", win.Job, marks)
		}
	})
}

func TestAJobThatIsGoneIsNotTakenOverByWhoeverNamesIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		dirs     map[string]string
		claimant uint32
	}{
		"of a cgroup, by another user":       {map[string]string{"unified": "/7"}, 666},
		"of a cgroup, by its own user":       {map[string]string{"unified": "/7"}, 1000},
		"of an environment, by another user": {nil, 666},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.pids[66] = local("7")
				w.jobs[local("7")] = &burn{from: time.Now(), dirs: tc.dirs}
				s, store := run(t, w)
				wait(1500 * time.Millisecond)
				w.change(func() { w.jobs[local("7")] = &burn{from: time.Now(), uid: tc.claimant} })
				for range 20 {
					wait(270 * time.Millisecond)
					if err := s.Mark(t.Context(), who(66, tc.claimant), api.Report{Epoch: 40}); !errors.Is(err, sampler.ErrNoJob) {
						t.Fatalf("the claimant's mark: got %v, want %v", err, sampler.ErrNoJob)
					}
				}
				if win := see(t, store, "7"); !win.Job.Ended || win.Job.UID != 1000 {
					t.Errorf("job %+v, want the one of user 1000 that ended", win.Job)
				}
			})
		})
	}
}

func TestARequeuedSlurmJobIsANewAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		key := attrib.Key{Manager: attrib.Slurm, ID: "42", Attempt: 1}
		w.jobs[key] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}}
		_, store := run(t, w)
		wait(2500 * time.Millisecond)
		w.change(func() { w.jobs[key].to = time.Now() })
		wait(3 * time.Second)
		w.change(func() { w.jobs[key] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}} })
		wait(2 * time.Second)
		if win := see(t, store, "42"); win.Job.Attempt != 2 || win.Job.Ended {
			t.Errorf("job %+v, want a running attempt 2", win.Job)
		}
		if win, ok := store.Window("42", 1, 0, 0, func(api.Job) bool { return true }); !ok || !win.Job.Ended {
			t.Errorf("attempt 1: %v %+v", ok, win.Job)
		}
	})
}

func slurm(id string) attrib.Key { return attrib.Key{Manager: attrib.Slurm, ID: id, Attempt: 1} }

func TestASlurmJobThatIsRequeuedBetweenTwoLooksIsANewAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = slurm("42")
		dirs := map[string]string{"unified": "/42"}
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 1, dirs: dirs, birth: 5, attempt: 1, confirmed: true}
		s, store := run(t, w)
		wait(2500 * time.Millisecond)
		w.change(func() {
			w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 1, dirs: dirs, birth: 6, confirmed: true}
		})
		wait(300 * time.Millisecond)
		if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		if win := see(t, store, "42"); win.Job.Attempt != 2 || win.Job.Ended {
			t.Errorf("job %+v, want a running attempt 2", win.Job)
		}
		w.change(func() { w.jobs[slurm("42")].attempt = 2 })
		wait(2 * time.Second)
		first, ok := store.Window("42", 1, 0, 0, func(api.Job) bool { return true })
		if !ok || !first.Job.Ended || first.Samples[len(first.Samples)-1].Values[api.ColCPUSeconds] > 2.6 {
			t.Errorf("attempt 1: %v %+v", ok, first.Job)
		}
		second := see(t, store, "42")
		if last := second.Samples[len(second.Samples)-1].Values[api.ColCPUSeconds]; last < 1 || last > 2.4 {
			t.Errorf("attempt 2 used %v CPU seconds since its start, want about 2", last)
		}
		w.change(func() { w.jobs[slurm("42")].attempt = 3 }) // no cgroup tells it, the count does
		wait(300 * time.Millisecond)
		if win := see(t, store, "42"); win.Job.Attempt != 3 || win.Job.Ended {
			t.Errorf("job %+v, want a running attempt 3", win.Job)
		}
	})
}

func TestTheSchedulersCountReplacesAGuessedAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}, birth: 5, confirmed: true}
		_, store := run(t, w)
		wait(1500 * time.Millisecond)
		if win := see(t, store, "42"); win.Job.Attempt != 1 {
			t.Fatalf("job %+v, want a guessed attempt 1", win.Job)
		}
		w.change(func() { w.jobs[slurm("42")].attempt = 4 })
		wait(1500 * time.Millisecond)
		win := see(t, store, "42")
		if win.Job.Attempt != 4 || win.Job.Ended || len(win.Samples) < 4 || win.Samples[0].Seq != 1 {
			t.Errorf("job %+v with %d samples, want attempt 4 with all of them", win.Job, len(win.Samples))
		}
		if n := len(store.Jobs(func(api.Job) bool { return true })); n != 1 {
			t.Errorf("%d attempts in the store, want 1", n)
		}
	})
}

// Where Slurm keeps no step of its own on each node (PrologFlags without Contain), the cgroups
// of a job are there only while one of its steps runs.
func TestAJobWhoseCgroupsLiveForAStepStaysOneAttempt(t *testing.T) {
	t.Parallel()
	for name, shownAfter := range map[string]time.Duration{"its number is read at once": 0, "later": 700 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				b := &burn{from: time.Now(), cores: 1, dirs: map[string]string{"unified": "/42"}, birth: 5, attempt: 1, confirmed: true}
				w.jobs[slurm("42")] = b
				s, store := run(t, w)
				wait(2500 * time.Millisecond)
				if err := s.MarkFor(t.Context(), "slurm/42", 1, api.Report{Saved: true, Nth: 1, Time: time.Now()}); err != nil {
					t.Fatal(err)
				}
				first, joules := see(t, store, "42").Job.First, charged(store)[slurm("42")].Total()
				w.change(func() { b.to = time.Now() })
				wait(3 * time.Second)
				w.change(func() { *b = burn{from: time.Now(), cores: 1, dirs: b.dirs, birth: 6, confirmed: true} })
				wait(shownAfter)
				w.change(func() { b.attempt = 1 })
				wait(2 * time.Second)
				win, ok := store.Window("42", 1, 0, 0, func(api.Job) bool { return true })
				if !ok || win.Job.Ended || win.Job.Saves != 1 || !win.Job.First.Equal(first) {
					t.Errorf("attempt 1: %v %+v, want it to run with one save since %v", ok, win.Job, first)
				}
				if now := charged(store)[slurm("42")].Total(); now < joules*1.5 || joules == 0 {
					t.Errorf("%v J after the first step, %v J in the second", joules, now)
				}
				if all := store.Jobs(func(api.Job) bool { return true }); len(all) != 1 {
					t.Errorf("attempts %+v, want one", all)
				}
			})
		})
	}
}

func TestAJobThatAStepDaemonNamedIsNotOverriddenByAClaim(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.jobs[slurm("42")] = &burn{from: time.Now(), confirmed: true, attempt: 1}
		_, store := run(t, w)
		wait(1300 * time.Millisecond)
		w.change(func() { w.jobs[slurm("42")] = &burn{from: time.Now(), uid: 666} })
		wait(2 * time.Second)
		win := see(t, store, "42")
		if win.Job.UID != 1000 || !win.Job.Ended {
			t.Errorf("job %+v, want the one of user 1000, ended", win.Job)
		}
		w.change(func() { w.jobs[slurm("42")] = &burn{from: time.Now(), confirmed: true, attempt: 2} })
		wait(2 * time.Second)
		if win := see(t, store, "42"); win.Job.Attempt != 2 || win.Job.Ended {
			t.Errorf("job %+v, want a running attempt 2", win.Job)
		}
	})
}

func TestUnreadableNodeCountersAreMissingAndNotZero(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("7", 1)
		s, store := run(t, w)
		wait(2500 * time.Millisecond)
		w.change(func() { w.failed = true })
		wait(2 * time.Second)
		samples := see(t, store, "7").Samples
		if v, ok := samples[len(samples)-1].Values[api.ColNodeBusy]; ok {
			t.Errorf("node_busy_seconds = %v", v)
		}
		w.change(func() { w.failed = false })
		wait(2 * time.Second)
		// The dark interval is charged with the next one: nothing is lost.
		if got, want := s.Snapshot().Book.Node.Idle, 40*6.0; math.Abs(got-want) > 1e-6 {
			t.Errorf("idle joules %v, want %v", got, want)
		}
	})
}

func TestACgroupThatIsMadeLateIsMeasuredFromThenOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		_, store := run(t, w)
		w.change(func() {
			w.jobs[local("7")] = &burn{from: time.Now(), cores: 1, dirs: map[string]string{"memory": "/m"}}
		})
		wait(300 * time.Millisecond)
		if win := see(t, store, "7"); win.Schema != api.SchemaAccounting {
			t.Errorf("schema %s before there is a cgroup for perf", win.Schema)
		}
		w.change(func() {
			w.jobs[local("7")].dirs = map[string]string{"memory": "/m", "unified": "/7"}
		})
		wait(2 * time.Second)
		win := see(t, store, "7")
		last := win.Samples[len(win.Samples)-1]
		if win.Schema != api.SchemaSoftware || last.Values[api.ColCPUSeconds] <= 0 {
			t.Errorf("schema %s, last sample %+v", win.Schema, last)
		}
	})
}

// charged are the joules of all attempts.
func charged(store *window.Store) map[attrib.Key]energy.Joules {
	out := map[attrib.Key]energy.Joules{}
	for _, l := range store.Latest() {
		out[window.Key(l.Job)] = l.Joules
	}
	return out
}

// serve runs something until the test ends.
func serve(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
