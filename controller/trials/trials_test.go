package trials_test

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
)

func TestASearchFindsTheBestAndStopsTheRestEarly(t *testing.T) {
	c := newCluster(9)
	x := play(t, c, policy())
	if len(x.Trials) != 9 || c.most > 3 {
		t.Errorf("%d trials, %d jobs at one time: want 9 and at most 3", len(x.Trials), c.most)
	}
	b := best(x)
	epochs := 0
	for _, tr := range x.Trials {
		if tr.Settings["x"].Float() > b.Settings["x"].Float() {
			t.Errorf("trial %d has x=%s and the best has %s", tr.Number, tr.Settings["x"], b.Settings["x"])
		}
		for i, r := range tr.Reports {
			if r.Epoch != i+1 {
				t.Errorf("trial %d: report %d is of epoch %d", tr.Number, i+1, r.Epoch)
			}
		}
		epochs += len(tr.Reports)
	}
	if b.State != searcher.Done || b.Last().Epoch != 9 || epochs >= 81 {
		t.Errorf("the best is %s after %d epochs; %d of 81 epochs ran", b.State, b.Last().Epoch, epochs)
	}
	if got := *b.Last().Joules; got != 90 {
		t.Errorf("%g joules, want 90", got)
	}
}

func TestWhatBecomesOfTrials(t *testing.T) {
	for _, tt := range []struct {
		name   string
		break_ func(*cluster)
		policy func(*tuning.Policy)
		want   func(x trials.State) bool
	}{
		{
			"a trial out of memory is an outcome, and the search goes on",
			func(c *cluster) {
				c.end = func(trial, _, epoch int) searcher.End {
					if trial == 2 && epoch == 1 {
						return searcher.NoMemory
					}
					return ""
				}
			}, nil,
			func(x trials.State) bool {
				return x.Trials[1].State == searcher.Failed && len(x.Trials) == 9 && x.Closing == ""
			},
		},
		{
			"a trial whose node failed is run again and goes on from its checkpoint",
			func(c *cluster) {
				c.end = func(trial, attempt, epoch int) searcher.End {
					if trial == 1 && attempt == 1 && epoch == 1 {
						return searcher.Lost
					}
					return ""
				}
			}, nil,
			func(x trials.State) bool { return x.Trials[0].Attempt >= 2 && x.Trials[0].Last().Epoch >= 2 },
		},
		{
			"a diverged trial is stopped at once",
			func(c *cluster) {
				c.value = func(x float64, _ int) (float64, bool) { return x, x < 0.5 }
			}, nil,
			func(x trials.State) bool {
				for _, tr := range x.Trials {
					broke := tuning.Count(tr.Log, func(e searcher.Event) bool { return e.Kind == searcher.Broke })
					if tr.Settings["x"].Float() >= 0.5 && (tr.State != searcher.Diverged || len(tr.Reports) > 0 || broke != 1) {
						return false
					}
				}
				return states(x)[searcher.Diverged] > 0
			},
		},
		{
			"a job that nears its time limit is ended, and another goes on from its checkpoint",
			func(c *cluster) { c.limit, c.ending = 4500*time.Millisecond, 2*time.Second }, nil,
			func(x trials.State) bool {
				return best(x).Last().Epoch == 9 && best(x).Attempt > 1 && states(x)[searcher.Failed] == 0
			},
		},
		{
			"a search of trials whose length only the job says ends them at rungs too",
			nil, func(p *tuning.Policy) { p.Search.Epochs, p.Progress.Total = 0, 0 },
			func(x trials.State) bool {
				return x.Plan.Epochs == 9 && states(x)[searcher.Stopped] > 0 && best(x).Last().Epoch == 9
			},
		},
		{
			"too many failures end the search",
			func(c *cluster) { c.end = func(int, int, int) searcher.End { return searcher.Broken } },
			func(p *tuning.Policy) { p.Search.Failures = 2 },
			func(x trials.State) bool { return x.Closing == "3 trials failed" && len(x.Trials) < 9 },
		},
		{
			"a budget of joules is exceeded by one epoch of what runs at most",
			nil, func(p *tuning.Policy) { p.Search.Energy = 200 },
			func(x trials.State) bool {
				s := x.Searcher()
				joules, _, _ := s.Spent()
				return joules >= 200 && joules <= 200+3*10
			},
		},
		{
			"a budget of time ends the search",
			nil, func(p *tuning.Policy) { p.Search.Time = 7 * time.Second },
			func(x trials.State) bool { return x.Ended.Sub(x.Created) < 10*time.Second && x.Closing != "" },
		},
		{
			"a trial that reaches the target is done",
			nil, func(p *tuning.Policy) { p.Quality.Target = new(0.1) },
			func(x trials.State) bool {
				b := best(x)
				return b.State == searcher.Done && b.Last().Value >= 0.1 && b.Last().Epoch < 9
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(9)
			if tt.break_ != nil {
				tt.break_(c)
			}
			change := func(p *tuning.Policy) {
				if tt.policy != nil {
					tt.policy(p)
				}
			}
			if x := play(t, c, policy(change)); !tt.want(x) || c.again > 0 {
				t.Errorf("%q, %d jobs ended again: %+v", x.Closing, c.again, x.Trials)
			}
		})
	}
}

func TestAStoppedSearchGoesOnWhereItWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, m := newCluster(9), newMemory()
		s := trials.New(trials.Config{Jobs: c, Store: m, Log: slog.New(slog.DiscardHandler)})
		begin(t, s, policy())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(3 * time.Second)
		if err := s.Resume(ctx, "s1", 0); !errors.Is(err, trials.ErrConflict) {
			t.Errorf("resumed while it ran: %v", err)
		}
		if err := s.Stop(ctx, "s1", "alice"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		x, err := s.Get("s1")
		if err != nil || !x.Over || x.Closing != "stopped by alice" {
			t.Fatalf("%v: over %t, %q", err, x.Over, x.Closing)
		}
		if err := s.Resume(ctx, "s1", 400); !errors.Is(err, trials.ErrConflict) {
			t.Errorf("resumed with more trials than settings: %v", err)
		}
		if err := s.Resume(ctx, "s1", 12); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if x = run(t, s); len(x.Trials) != 12 || x.Closing != "" {
			t.Errorf("%d trials, %q: want 12 and no reason", len(x.Trials), x.Closing)
		}
	})
}

var errKilled = errors.New("killed")

// A controller that dies after any write and is restarted ends the search as one that never died: with one
// job at a time and trials that only depend on their hyperparameters.
func TestAKillAfterAnyWriteChangesNothing(t *testing.T) {
	alone := func(p *tuning.Policy) { p.Search.Parallel = 1 }
	want := play(t, newCluster(9), policy(alone))
	for kill := 1; ; kill++ {
		c, m := newCluster(9), newMemory()
		killed := false
		var got trials.State
		synctest.Test(t, func(t *testing.T) {
			writes := 0
			s := trials.New(trials.Config{Jobs: c, Store: m, Log: slog.New(slog.DiscardHandler), AfterSave: func() {
				if writes++; writes == kill {
					killed = true
					panic(errKilled)
				}
			}})
			func() {
				defer func() {
					if p := recover(); p != nil && p != any(errKilled) {
						panic(p)
					}
				}()
				begin(t, s, policy(alone))
				got = runHere(t, s)
			}()
			if killed {
				s = trials.New(trials.Config{Jobs: c, Store: m, Log: slog.New(slog.DiscardHandler)})
				got = run(t, s)
			}
		})
		if !killed {
			if kill < 20 {
				t.Fatalf("only %d writes", kill)
			}
			return
		}
		for i := range want.Trials {
			a, b := want.Trials[i], got.Trials[i]
			if a.State != b.State || !a.Settings.Equal(b.Settings) || a.Attempt != b.Attempt || len(a.Reports) != len(b.Reports) {
				t.Fatalf("killed after write %d: trial %d: %s, %d attempts, %d reports; want %s, %d, %d", kill, a.Number, b.State, b.Attempt, len(b.Reports), a.State, a.Attempt, len(a.Reports))
			}
			for k := range a.Reports {
				x, y := a.Reports[k], b.Reports[k]
				x.At, y.At = 0, 0
				if !reflect.DeepEqual(x, y) {
					t.Fatalf("killed after write %d: trial %d: report %+v, want %+v", kill, a.Number, y, x)
				}
			}
		}
	}
}

// runHere works in the caller's goroutine, so that a panic can be caught there.
func runHere(t *testing.T, s *trials.Service) trials.State {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			time.Sleep(250 * time.Millisecond)
			if x, err := s.Get("s1"); err == nil && x.Over {
				time.Sleep(time.Second)
				cancel()
			}
		}
	}()
	_ = s.Run(ctx)
	x, err := s.Get("s1")
	if err != nil {
		t.Fatal(err)
	}
	return x
}
