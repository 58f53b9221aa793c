package sampler_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// rack is a world whose board shows what machine and cards take together, and whose cards
// are read by themselves, some time before the sampler looks.
type rack struct {
	*world
	t    *testing.T
	file string

	lock  sync.Mutex
	host  float64 // watts besides the cards
	cards float64 // watts of these
	took  float64 // joules of these up to since
	since time.Time
	blind bool
	seen  float64 // joules, as of the last reading of the cards
	at    time.Time
}

func newRack(t *testing.T, dir string, host, cards float64) *rack {
	t.Helper()
	r := &rack{world: newWorld(), t: t, file: filepath.Join(dir, "class/hwmon/hwmon0/power1_average"), host: host, cards: cards, since: time.Now()}
	if err := errors.Join(os.MkdirAll(filepath.Dir(r.file), 0o755), os.WriteFile(filepath.Join(filepath.Dir(r.file), "name"), []byte("power_meter\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	r.show(host, cards)
	return r
}

// show changes what machine and cards take.
func (r *rack) show(host, cards float64) {
	r.t.Helper()
	r.lock.Lock()
	defer r.lock.Unlock()
	r.took += r.cards * time.Since(r.since).Seconds()
	r.host, r.cards, r.since = host, cards, time.Now()
	if err := os.WriteFile(r.file, []byte(strconv.FormatFloat((host+cards)*1e6, 'f', 0, 64)), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// gpus reads the cards when the last reading is a second old.
func (r *rack) gpus() (float64, time.Time, bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if now := time.Now(); !r.blind && (r.at.IsZero() || now.Sub(r.at) >= time.Second) {
		r.at = now.Add(-300 * time.Millisecond)
		r.seen = r.took + r.cards*max(r.at.Sub(r.since).Seconds(), 0)
	}
	return r.seen, r.at, !r.blind
}

func (r *rack) hide(blind bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.blind = blind
}

// Name is that of the collector that gives the job in /a all cards.
func (r *rack) Name() string { return "gpu" }

// Probe says nothing.
func (r *rack) Probe(context.Context) []api.Source { return nil }

// Open is for the job in /a alone.
func (r *rack) Open(_ context.Context, t collector.Target) (collector.Reader, error) {
	if t.Dirs["unified"] != "/a" {
		return nil, collector.ErrUnsupported
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	return owner{r, r.seen}, nil
}

type owner struct {
	*rack
	from float64
}

// Read reports what the cards took since the job came.
func (o owner) Read(_ context.Context, _ collector.Moment, out collector.Values) error {
	o.lock.Lock()
	defer o.lock.Unlock()
	out[api.ColGPUJoules] = o.seen - o.from
	return nil
}

// Close does nothing.
func (o owner) Close() error { return nil }

// runRack starts a sampler on it that looks each five seconds.
func runRack(t *testing.T, r *rack, dir string) (*sampler.Sampler, *window.Store) {
	t.Helper()
	sensors, err := energy.ParseSensors()
	if err != nil {
		t.Fatal(err)
	}
	meter, err := energy.NewHWMon(hostfs.Root{SysFS: dir}, sensors, energy.Model{Idle: 116, Max: 400})
	if err != nil {
		t.Fatal(err)
	}
	store := window.New(window.Config{})
	cfg := sampler.Config{Cores: 4, GPUs: r.gpus, Interval: 5 * time.Second, Discover: 5 * time.Second}
	s := sampler.New(cfg, r.world, []collector.Collector{counter{r.world}, r}, r.world, meter, store)
	serve(t, s.Run)
	synctest.Wait()
	return s, store
}

// The cards' power does not count as the idle machine's or as its jobs'.
func TestCardsThatTheNodesMeterCountsAreCountedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRack(t, dir, 60, 240)
		s, store := runRack(t, r, dir)
		wait(time.Hour + time.Millisecond)
		snap := s.Snapshot()
		if snap.IdleBasis != "calibrated" || math.Abs(snap.IdleWatts-60) > 0.1 {
			t.Errorf("idle %v W, %s; want the 60 W beside the cards", snap.IdleWatts, snap.IdleBasis)
		}
		if got, want := snap.Book.Node.Total(), 300*snap.At.Sub(began).Seconds(); math.Abs(got-want) > 1e-3*want {
			t.Errorf("node %.0f J after an hour without work, want %.0f", got, want)
		}
		r.begin("a", 2)
		r.show(60+100, 240)
		wait(10 * time.Minute)
		snap = s.Snapshot()
		a, node := charged(store)[local("a")], snap.Book.Node.Total()
		want := 300*snap.At.Sub(began).Seconds() + 100*600
		if math.Abs(node-want) > 1e-3*want {
			t.Errorf("node %.0f J, want the meter's %.0f", node, want)
		}
		// The sensor is integrated: the first five seconds of the work show half of it.
		if math.Abs(a.Active-100*600) > 0.01*100*600 {
			t.Errorf("the job's active joules are %.0f, want %d", a.Active, 100*600)
		}
		sum := snap.Book.System.Total() + a.Total()
		if math.Abs(sum-node) > 1e-3*node {
			t.Errorf("jobs and system %.0f J, node %.0f J", sum, node)
		}
		if last := see(t, store, "a"); last.Samples[len(last.Samples)-1].Values[api.ColJoules] == 0 {
			t.Error("the job's joules are not in its samples")
		}
	})
}

// What a job's cards take is charged only to it, in addition to its share of the rest.
func TestAJobsCardsThatTheNodesMeterCountsAreChargedOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRack(t, dir, 60, 240)
		s, store := runRack(t, r, dir)
		wait(time.Minute + time.Millisecond)
		r.begin("a", 2)
		r.begin("b", 2) // each has half of the rest
		wait(time.Second)
		r.show(60+200, 240+460)
		wait(10 * time.Minute)
		r.show(60, 240)
		r.end("a")
		r.end("b")
		wait(time.Minute)
		snap := s.Snapshot()
		meter := 300*snap.At.Sub(began).Seconds() + 660*600
		a, b, node := charged(store)[local("a")], charged(store)[local("b")], snap.Book.Node
		if math.Abs(node.Total()-meter) > 2e-3*meter {
			t.Errorf("node %.0f J, want the meter's %.0f", node.Total(), meter)
		}
		if want := 240*snap.At.Sub(began).Seconds() + 460*600; math.Abs(node.GPU-want) > 2e-3*want {
			t.Errorf("the cards' part is %.0f J, want %.0f", node.GPU, want)
		}
		if math.Abs(a.GPU-700*600) > 0.01*700*600 || b.GPU != 0 || math.Abs(a.Active-100*600) > 0.02*100*600 || math.Abs(b.Active-100*600) > 0.02*100*600 {
			t.Errorf("jobs %+v and %+v; want 60 kJ active of each, and 420 kJ of the cards for the first", a, b)
		}
		if sum := a.Total() + b.Total() + snap.Book.System.Total(); math.Abs(sum-node.Total()) > 1e-6*sum {
			t.Errorf("jobs and system %.0f J, node %.0f J", sum, node.Total())
		}
	})
}

func TestCardsThatAreNotReadAreGuessedForAWhileAndThenTheJoulesAreMissing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		r := newRack(t, dir, 60, 240)
		r.begin("a", 2)
		s, store := runRack(t, r, dir)
		known := func() bool {
			samples := see(t, store, "a").Samples
			_, there := samples[len(samples)-1].Values[api.ColJoules]
			return there
		}
		wait(time.Minute + time.Millisecond)
		r.hide(true)
		wait(20 * time.Second)
		if !known() {
			t.Error("the job's joules are missing after 20 s")
		}
		before := s.Snapshot()
		wait(time.Minute)
		if now := s.Snapshot(); known() || now.Covered > before.Covered+15 || len(now.Silent) == 0 {
			t.Errorf("%v s covered after %v, silent %v", now.Covered, before.Covered, now.Silent)
		}
		r.show(60, 300) // no one sees it yet
		wait(time.Minute)
		r.hide(false)
		wait(11 * time.Second)
		snap := s.Snapshot()
		want := 300*snap.At.Sub(began).Seconds() + 60*(snap.At.Sub(began).Seconds()-140)
		if node := snap.Book.Node.Total(); !known() || math.Abs(node-want) > 5e-3*want {
			t.Errorf("known %v; node %.0f J, want the meter's %.0f", known(), node, want)
		}
	})
}

// gappy is a meter of whose intervals those lack a time that a test chooses.
type gappy struct {
	*energy.Modeller
	lacks atomic.Bool
}

func (g *gappy) Settle(a energy.Activity) (energy.Split, bool) {
	s, ok := g.Modeller.Settle(a)
	s.Lacks = g.lacks.Load()
	return s, ok
}

// Of a time of which the meter, or the cards, say nothing any more, a job's sum lacks what it took:
// it has none until its end, whatever exporter goes on with it.
func TestAJobWhoseJoulesLackATimeHasNoneUntilItsEndAlsoAfterARestart(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name             string
		meter, cards     bool // which lacks the time
		stopped          time.Duration
		joules, gpuKnown bool // afterwards
	}{
		{"neither", false, false, 5 * time.Second, true, true},
		{"the meter", true, false, 0, false, true},
		{"the cards when the exporter is stopped", false, true, 0, false, false},
		{"both, while no exporter ran", false, false, 2 * time.Minute, false, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w, key := newWorld(), local("7")
				w.jobs[key] = &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir}, confirmed: true}
				var kept sampler.State
				meter := &gappy{}
				start := func() (*window.Store, func()) {
					store, c := window.New(window.Config{}), &cards{from: time.Now(), dir: dir, all: 1, own: time.Now()}
					meter.Modeller = energy.NewModeller(energy.Model{Idle: 40, Max: 120})
					cfg := sampler.Config{Cores: 4, GPUs: c.total, Keep: true, Boot: "this", Earlier: kept}
					s := sampler.New(cfg, w, []collector.Collector{counter{w}, c}, w, meter, store)
					ctx, stop := context.WithCancel(t.Context())
					go func() { _ = s.Run(ctx) }() // it returns none
					return store, func() {
						c.set(func() { c.blind = tc.cards })
						wait(3 * time.Second)
						stop()
						synctest.Wait()
						text, err := json.Marshal(s.Snapshot().State)
						if err = errors.Join(err, json.Unmarshal(text, &kept)); err != nil {
							t.Fatal(err)
						}
					}
				}
				_, stop := start()
				wait(3500 * time.Millisecond)
				meter.lacks.Store(tc.meter)
				wait(time.Second)
				meter.lacks.Store(false)
				stop()
				tc.cards = false
				time.Sleep(tc.stopped)
				store, stop := start()
				wait(5500 * time.Millisecond)
				last := see(t, store, "7").Samples
				_, joules := last[len(last)-1].Values[api.ColJoules]
				_, gpu := last[len(last)-1].Values[api.ColGPUJoules]
				if joules != tc.joules || gpu != tc.gpuKnown {
					t.Errorf("joules known %v, of cards %v; want %v and %v", joules, gpu, tc.joules, tc.gpuKnown)
				}
				w.change(func() { w.jobs[key].to = time.Now() })
				wait(2 * time.Second)
				if v := store.Named(store.Latest()[0]); (v[api.ColJoules] > 0) != tc.joules {
					t.Errorf("at its end it has %v J", v[api.ColJoules])
				}
				stop()
			})
		})
	}
}
