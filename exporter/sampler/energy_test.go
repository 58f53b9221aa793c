package sampler_test

import (
	"context"
	"errors"
	"math"
	"sync"
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

// cards are graphics cards of 50 W; the job in dir has one since it began.
type cards struct {
	mu    sync.Mutex
	from  time.Time
	dir   string
	own   time.Time // since when the job is on its card
	blind bool      // nothing is known of them now
	all   int
}

const cardWatts = 50

func (c *cards) total() (float64, time.Time, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cardWatts * float64(c.all) * time.Since(c.from).Seconds(), time.Now(), !c.blind
}

func (c *cards) set(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

func (c *cards) Name() string { return "gpu" }

func (c *cards) Probe(context.Context) []api.Source { return nil }

func (c *cards) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	if t.Dirs["unified"] != c.dir {
		return nil, collector.ErrUnsupported
	}
	return onCard{c}, nil
}

type onCard struct{ *cards }

func (c onCard) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.own.IsZero():
	case c.blind:
		out[api.ColGPUJoules] = math.NaN()
		return errors.New("the helper hangs")
	default:
		out[api.ColGPUJoules] = cardWatts * m.Time.Sub(c.own).Seconds()
	}
	return nil
}

func (c onCard) Close() error { return nil }

// runCards starts a sampler on a world with cards.
func runCards(t *testing.T, w *world, c *cards, cfg sampler.Config) (*sampler.Sampler, *window.Store) {
	t.Helper()
	store := window.New(window.Config{})
	cfg.Cores, cfg.GPUs = 4, c.total
	s := sampler.New(cfg, w, []collector.Collector{counter{w}, c}, w, energy.NewModeller(energy.Model{Idle: 40, Max: 120}), store)
	serve(t, s.Run)
	synctest.Wait()
	return s, store
}

func TestAJobsJoulesIncludeThoseOfItsCards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := &cards{from: time.Now(), dir: "/a", all: 2}
		s, store := runCards(t, w, c, sampler.Config{})
		w.pids[7] = local("a")
		wait(2 * time.Second)
		w.begin("a", 1)
		w.begin("b", 1)
		wait(2 * time.Second)
		c.set(func() { c.own = time.Now() })
		wait(10*time.Second + 500*time.Millisecond)
		// 1. What the job's sum is, and its part, at a tick and at a mark.
		b := see(t, store, "b").Samples
		if err := s.Mark(t.Context(), who(7, 1000), api.Report{Epoch: 1}); err != nil {
			t.Fatal(err)
		}
		a := see(t, store, "a").Samples
		for i, at := range []time.Duration{0, 500 * time.Millisecond} {
			last := a[len(a)-2+i].Values
			cards := cardWatts * (10*time.Second + at).Seconds()
			node := b[len(b)-1].Values[api.ColJoules] + at.Seconds()*30 // 20 W busy, a quarter of 40 W idle
			if got := last[api.ColJoules]; math.Abs(got-(node+cards)) > 1e-6 || math.Abs(last[api.ColGPUJoules]-cards) > 1e-6 {
				t.Errorf("%v after a tick: %v J, of which the cards took %v; want %v and %v", at, got, last[api.ColGPUJoules], node+cards, cards)
			}
		}
		// 2. Jobs and system sum to the node, and the idle card is the system's.
		snap := s.Snapshot()
		sum := snap.Book.System.Total()
		for _, j := range charged(store) {
			sum += j.Total()
		}
		if node := snap.Book.Node; math.Abs(sum-node.Total()) > 1e-9*sum || math.Abs(node.GPU-2*cardWatts*14) > 1e-6 {
			t.Errorf("jobs and system %v J, node %+v", sum, node)
		}
		if got := snap.Book.System.GPU; math.Abs(got-(2*14-10)*cardWatts) > 1e-6 {
			t.Errorf("the system's part of the cards is %v J", got)
		}
		if u := snap.Users; len(u) != 1 || math.Abs(u[0].Joules.GPU-10*cardWatts) > 1e-6 {
			t.Errorf("users %+v", u)
		}
		if w := see(t, store, "a"); w.Source != energy.Modelled {
			t.Errorf("the sum is called %s, and its weakest part is modelled", w.Source)
		}
	})
}

func TestWhileItsCardsAreNotKnownAJobsJoulesAreMissing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		c := &cards{from: time.Now(), dir: "/a", all: 1, own: time.Now()}
		s, store := runCards(t, w, c, sampler.Config{})
		w.begin("a", 1)
		wait(5100 * time.Millisecond)
		c.set(func() { c.blind = true })
		wait(5 * time.Second)
		last := func() map[string]float64 {
			samples := see(t, store, "a").Samples
			return samples[len(samples)-1].Values
		}
		blind := last()
		for _, column := range []string{api.ColJoules, api.ColGPUJoules} {
			if v, ok := blind[column]; ok {
				t.Errorf("%s is %v while the cards are not known", column, v)
			}
		}
		if blind[api.ColCPUSeconds] == 0 {
			t.Error("other columns are missing too")
		}
		c.set(func() { c.blind = false })
		wait(time.Second)
		// Nothing of what they took meanwhile is lost.
		if got, want := last()[api.ColGPUJoules], cardWatts*11.0; math.Abs(got-want) > 1e-6 {
			t.Errorf("%v J of the cards, want %v", got, want)
		}
		snap := s.Snapshot()
		if node := snap.Book.Node.GPU; math.Abs(node-cardWatts*11) > 1e-6 || snap.Book.System.GPU > 1e-6 {
			t.Errorf("node %v J of the cards, system %v J", node, snap.Book.System.GPU)
		}
	})
}

func TestTheJoulesOfCardsSurviveARestartAndStayAfterTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		key := attrib.Key{Manager: attrib.Slurm, ID: "42", Attempt: 1}
		w.jobs[key] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true}
		c := &cards{from: time.Now(), dir: dir, all: 1, own: time.Now()}
		first, _ := runCards(t, w, c, sampler.Config{Keep: true, Boot: "this"})
		wait(10*time.Second + time.Millisecond)
		saved := first.Snapshot().State
		again := &cards{from: time.Now(), dir: dir, all: 1, own: time.Now()} // its book begins again
		_, store := runCards(t, w, again, sampler.Config{Keep: true, Boot: "this", Earlier: saved})
		wait(10*time.Second + time.Millisecond)
		w.change(func() { w.jobs[key].to = time.Now() })
		wait(5 * time.Minute)
		win := see(t, store, "42")
		last := win.Samples[len(win.Samples)-1]
		if got := last.Values[api.ColGPUJoules]; !last.Ended || math.Abs(got-20*cardWatts) > 2*cardWatts {
			t.Errorf("ended %v with %v J of its cards, want about %v", last.Ended, got, 20*cardWatts)
		}
		if got := last.Values[api.ColJoules]; math.Abs(got-20*(cardWatts+20+20)) > 100 {
			t.Errorf("ended with %v J in all", got)
		}
	})
}

// fast is a meter that may not go unread for 100 ms.
type fast struct {
	*energy.Modeller
	mu    sync.Mutex
	read  []time.Duration
	known []energy.Calibration
}

func (f *fast) Within() time.Duration { return 100 * time.Millisecond }

func (f *fast) Read(_ context.Context, elapsed time.Duration) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = append(f.read, elapsed)
	return nil
}

func (f *fast) Calibrations() []energy.Calibration { return f.known }

func (f *fast) Recall(known []energy.Calibration) { f.known = known }

func TestAMeterThatCannotWaitIsReadBetweenTheTicks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		meter := &fast{Modeller: energy.NewModeller(energy.Model{Idle: 40, Max: 120})}
		known := []energy.Calibration{{ID: "x", Watts: 7, At: time.Now()}}
		cfg := sampler.Config{Cores: 4, Keep: true}
		cfg.Earlier.Idle = known
		s := sampler.New(cfg, w, nil, w, meter, window.New(window.Config{}))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		wait(10*time.Second + 50*time.Millisecond)
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		meter.mu.Lock()
		defer meter.mu.Unlock()
		if n := len(meter.read); n < 90 || n > 112 {
			t.Errorf("read %d times in 10 s", n)
		}
		for _, elapsed := range meter.read {
			if elapsed > 100*time.Millisecond {
				t.Errorf("unread for %v", elapsed)
			}
		}
		// What the node takes without work goes on from one exporter to the next.
		if got := s.Snapshot().State.Idle; len(got) != 1 || got[0] != known[0] {
			t.Errorf("kept %+v, want %+v", got, known)
		}
	})
}

func TestASumThatAnEarlierExporterModelledStaysModelled(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, earlier, want string
		inPlace             bool
	}{
		{"it measured as this one does", "metered", "metered", false},
		{"it modelled", energy.Modelled, energy.Modelled, false},
		{"it modelled, and the task is restarted in place", energy.Modelled, energy.Modelled, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				b := &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, birth: 1, confirmed: true}
				w.jobs[nomad("42")] = b
				first, _ := runWith(t, w, sampler.Config{Keep: true, Boot: "this"})
				wait(5 * time.Second)
				saved := first.Snapshot().State
				saved.Jobs[0].Source = tc.earlier
				store := window.New(window.Config{})
				s := sampler.New(sampler.Config{Keep: true, Boot: "this", Earlier: saved, Cores: 4}, w, []collector.Collector{counter{w}}, w, metered{energy.NewModeller(energy.Model{Idle: 40, Max: 120})}, store)
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- s.Run(ctx) }()
				wait(2 * time.Second)
				if tc.inPlace {
					w.change(func() { *b = burn{from: time.Now(), cores: 2, dirs: b.dirs, birth: 2, confirmed: true} })
					wait(2 * time.Second)
				}
				cancel()
				if err := <-done; err != nil {
					t.Fatal(err)
				}
				if got := see(t, store, "42").Source; got != tc.want {
					t.Errorf("the sum is called %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// metered is a meter that measures.
type metered struct{ *energy.Modeller }

func (metered) Source() string { return "metered" }
