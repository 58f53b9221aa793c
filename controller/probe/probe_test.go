package probe_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/probe"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// cluster runs short jobs whose epochs take as long as takes says.
type cluster struct {
	takes   func(cores int) time.Duration
	epochs  int
	started map[driver.RequestID]time.Time
	order   []string
	cores   map[driver.JobID]int
	stopped map[driver.JobID]bool
	fails   int                    // cores with which a job fails
	refuses int                    // cores that no node has
	begun   func(driver.RequestID) // called with each new one
}

func newCluster() *cluster {
	return &cluster{
		takes: func(cores int) time.Duration { return 12 * time.Second / time.Duration(cores) }, epochs: 4,
		started: map[driver.RequestID]time.Time{}, cores: map[driver.JobID]int{}, stopped: map[driver.JobID]bool{},
	}
}

func (c *cluster) Start(ctx context.Context, id driver.RequestID, s driver.Spec, change driver.Change) (driver.Job, error) {
	if err := ctx.Err(); err != nil {
		return driver.Job{}, err
	}
	cores := max(change.Cores, 1)
	if cores == c.refuses {
		return driver.Job{}, fmt.Errorf("too large: %w", driver.ErrInvalid)
	}
	job := driver.JobID("job-" + string(id))
	if _, ok := c.started[id]; !ok {
		if !s.Off || s.Env["EPOCHS"] != "4" {
			return driver.Job{}, fmt.Errorf("%+v: %w", s, driver.ErrInvalid)
		}
		c.started[id] = time.Now()
		c.cores[job] = cores
		c.order = append(c.order, fmt.Sprintf("%d cores", cores))
		if c.begun != nil {
			c.begun(id)
		}
	}
	return c.Get(ctx, job)
}

func (c *cluster) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if err := ctx.Err(); err != nil {
		return driver.Job{}, err
	}
	began, ok := c.started[driver.RequestID(strings.TrimPrefix(string(id), "job-"))]
	if !ok {
		return driver.Job{}, driver.ErrNotFound
	}
	job := driver.Job{ID: id, State: driver.Running}
	switch {
	case c.stopped[id]:
		job.State = driver.Cancelled
	case time.Since(began) < time.Duration(c.epochs)*c.takes(c.cores[id]):
	case c.cores[id] == c.fails:
		job.State = driver.Failed
	default:
		job.State = driver.Succeeded
	}
	return job, nil
}

func (c *cluster) Stop(_ context.Context, id driver.JobID) error {
	c.stopped[id] = true
	return nil
}

func (c *cluster) Logs(_ context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	began := c.started[driver.RequestID(strings.TrimPrefix(string(id), "job-"))]
	var b strings.Builder
	for n := 1; n <= c.epochs && time.Since(began) >= time.Duration(n)*c.takes(c.cores[id]); n++ {
		fmt.Fprintf(&b, "epoch %d/%d\n", n, c.epochs)
	}
	return io.NopCloser(strings.NewReader(b.String()[offset:])), nil
}

func policy() tuning.Policy {
	p := tuning.DefaultPolicy()
	p.Objective, p.Progress = tuning.Time, tuning.Progress{Pattern: `^epoch (?P<epoch>\d+)/(?P<total>\d+)`}
	p.Knobs = []tuning.Knob{{Name: tuning.Cores, Values: []tuning.Value{tuning.Number(1), tuning.Number(2), tuning.Number(4)}}}
	return p
}

func config(t *testing.T, c *cluster, path string) probe.Config {
	t.Helper()
	p, own := policy(), tuning.Settings{tuning.Cores: tuning.Number(1)}
	return probe.Config{
		Jobs: c, Spec: driver.Spec{Filename: "train.nomad.hcl", Env: map[string]string{"EPOCHS": "4"}}, Policy: p, Own: own, Probes: 4, File: path,
		Change:  func(target tuning.Settings) (driver.Change, error) { return reconcile.Change(p, own, target) },
		Measure: func(_ context.Context, _ driver.Job, epochs []tuning.Epoch) []tuning.Epoch { return epochs },
		Tell:    func(probe.Tried) {}, Log: slog.New(slog.DiscardHandler),
	}
}

func memory(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "probes", "probe.json")
}

func TestTheBestIsChosenWhereItIsBetterBeyondTheNoise(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		with  func(*cluster, *probe.Config)
		order []string
		want  driver.Change
	}{
		{"more cores are faster", func(*cluster, *probe.Config) {}, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{Cores: 4}},
		{"all are alike, and the owner's stay", func(c *cluster, _ *probe.Config) { c.takes = func(int) time.Duration { return 3 * time.Second } }, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{}},
		{"fewer may be tried", func(_ *cluster, cfg *probe.Config) { cfg.Probes = 1 }, []string{"1 cores", "4 cores"}, driver.Change{Cores: 4}},
		{"what fails is not chosen", func(c *cluster, _ *probe.Config) { c.fails = 4 }, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{Cores: 2}},
		{"what no node has is not chosen", func(c *cluster, _ *probe.Config) { c.refuses = 4 }, []string{"1 cores", "2 cores"}, driver.Change{Cores: 2}},
		{"what is slower than allowed is not chosen", func(c *cluster, _ *probe.Config) {
			c.takes = func(cores int) time.Duration { return time.Duration(cores) * time.Second }
		}, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{}},
		{"joules decide where they are measured", func(_ *cluster, cfg *probe.Config) {
			cfg.Policy.Objective = tuning.Energy
			cfg.Measure = func(_ context.Context, _ driver.Job, epochs []tuning.Epoch) []tuning.Epoch {
				for i := range epochs {
					j := tuning.Joules(100)
					if epochs[i].Settings[tuning.Cores] == tuning.Number(2) {
						j = 40
					}
					epochs[i].Joules, epochs[i].Source = &j, "rapl"
				}
				return epochs
			}
		}, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{Cores: 2}},
		{"joules that were not measured are unknown", func(_ *cluster, cfg *probe.Config) { cfg.Policy.Objective = tuning.Energy }, []string{"1 cores", "4 cores", "2 cores"}, driver.Change{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := memory(t)
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				cfg := config(t, c, path)
				tt.with(c, &cfg)
				told := 0
				cfg.Tell = func(probe.Tried) { told++ }
				got, err := probe.Run(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(tt.order, c.order); diff != "" {
					t.Errorf("tried (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(tt.want, got.Change); diff != "" || got.Better() == tt.want.Empty() {
					t.Errorf("chosen (-want +got):\n%s%+v", diff, got)
				}
				if told != len(got.Tried) {
					t.Errorf("told of %d of %d", told, len(got.Tried))
				}
			})
		})
	}
}

// Wherever it is killed, no finished job is run again, and the choice is the same.
func TestKilledAnywhereItGoesOnBehindTheLastJobThatWasMeasured(t *testing.T) {
	t.Parallel()
	for _, after := range []time.Duration{time.Second, 20 * time.Second, 49 * time.Second, 55 * time.Second, 70 * time.Second} {
		t.Run(fmt.Sprintf("after %v", after), func(t *testing.T) {
			t.Parallel()
			path := memory(t)
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				cfg := config(t, c, path)
				cfg.Jobs = deaf{c} // a process that is killed stops nothing
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				if _, err := probe.Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("%v", err)
				}
				got, err := probe.Run(t.Context(), config(t, c, path))
				if err != nil || got.Change.Cores != 4 || len(got.Tried) != 3 {
					t.Fatalf("%+v (%v)", got, err)
				}
				if diff := cmp.Diff([]string{"1 cores", "4 cores", "2 cores"}, c.order); diff != "" {
					t.Errorf("started (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// deaf is a cluster that nothing reaches which a dead process would have asked for.
type deaf struct{ *cluster }

func (deaf) Stop(context.Context, driver.JobID) error { return nil }

func TestAJobThatEndedWhileItWasNotReadIsRunAgain(t *testing.T) {
	t.Parallel()
	path := memory(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		cfg := config(t, c, path)
		cfg.Jobs = deaf{c}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := probe.Run(ctx, cfg); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
		time.Sleep(time.Hour)
		got, err := probe.Run(t.Context(), config(t, c, path))
		if err != nil || got.Change.Cores != 4 {
			t.Fatalf("%+v (%v)", got, err)
		}
		if diff := cmp.Diff([]string{"1 cores", "1 cores", "4 cores", "2 cores"}, c.order); diff != "" {
			t.Errorf("started (-want +got):\n%s", diff)
		}
		// What is known of all of them is not measured again.
		again, err := probe.Run(t.Context(), config(t, c, path))
		if err != nil || len(c.order) != 4 || again.Change.Cores != 4 {
			t.Errorf("%d started, %+v (%v)", len(c.order), again, err)
		}
	})
}

func TestInterruptedItStopsTheJobThatRuns(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]time.Duration{"while it runs": time.Second, "while it is started": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := memory(t)
			synctest.Test(t, func(t *testing.T) {
				c := newCluster()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				c.begun = func(driver.RequestID) {
					if when == 0 {
						cancel()
						return
					}
					time.AfterFunc(when, cancel)
				}
				if _, err := probe.Run(ctx, config(t, c, path)); !errors.Is(err, context.Canceled) {
					t.Fatalf("%v", err)
				}
				if len(c.started) != 1 || len(c.stopped) != 1 {
					t.Errorf("%d started, %d stopped, want one of each", len(c.started), len(c.stopped))
				}
				c.begun = nil
				got, err := probe.Run(t.Context(), config(t, c, path))
				if err != nil || got.Change.Cores != 4 || len(c.order) != 4 {
					t.Errorf("run again: %+v after %q (%v)", got, c.order, err)
				}
			})
		})
	}
}

func TestWhatCannotBeProbedIsRefusedBeforeAnythingIsStarted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		with func(*probe.Config)
		want string
	}{
		"no pattern":     {func(c *probe.Config) { c.Policy.Progress.Pattern = "" }, "no progress pattern"},
		"a bad pattern":  {func(c *probe.Config) { c.Policy.Progress.Pattern = "(" }, "missing closing"},
		"without epochs": {func(c *probe.Config) { c.Policy.Progress.Pattern = "x" }, "epoch"},
		"no knob":        {func(c *probe.Config) { c.Policy.Knobs = nil }, "no knob"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			cfg := config(t, c, memory(t))
			tt.with(&cfg)
			if _, err := probe.Run(t.Context(), cfg); !errors.Is(err, probe.ErrPolicy) || !strings.Contains(err.Error(), tt.want) || len(c.started) > 0 {
				t.Errorf("%v with %d started, want %v that says %q", err, len(c.started), probe.ErrPolicy, tt.want)
			}
		})
	}
}

func TestAJobThatFailsUnderItsOwnSettingsIsNotProbed(t *testing.T) {
	t.Parallel()
	path := memory(t)
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.fails = 1
		if _, err := probe.Run(t.Context(), config(t, c, path)); !errors.Is(err, probe.ErrProbe) || len(c.started) != 1 {
			t.Errorf("%v with %d started", err, len(c.started))
		}
	})
}

func TestEachRunOfProbesHasANameOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		for range 3 {
			if _, err := probe.Run(t.Context(), config(t, c, memory(t))); err != nil {
				t.Fatal(err)
			}
		}
		if len(c.started) != 9 {
			t.Errorf("%d jobs, want three of each run", len(c.started))
		}
	})
}
