package trials_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// troubled is a cluster that starts and shows jobs otherwise.
type troubled struct {
	*cluster

	asked int // starts
	start func(asked int, spec driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error)
	see   func(c *cluster, id driver.JobID, v trials.View) (trials.View, error)
}

func (c *troubled) Start(ctx context.Context, x trials.Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error) {
	c.asked++
	return c.start(c.asked, spec, func() (driver.JobID, error) { return c.cluster.Start(ctx, x, id, spec) })
}

func (c *troubled) See(ctx context.Context, id driver.JobID) (trials.View, error) {
	v, err := c.cluster.See(ctx, id)
	if err != nil {
		return v, err
	}
	return c.see(c.cluster, id, v)
}

func TestASearchStandsTroubleWithItsScheduler(t *testing.T) {
	transient := fmt.Errorf("slurmctld: %w", driver.ErrTransient)
	for _, tt := range []struct {
		name  string
		start func(asked int, spec driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error)
		see   func(c *cluster, id driver.JobID, v trials.View) (trials.View, error)
		want  func(x trials.State, c *troubled) bool

		change func(*tuning.Policy)
	}{
		{
			name: "a scheduler that is away for a while is asked again, and each job starts once",
			start: func(asked int, _ driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error) {
				if asked%3 > 0 {
					return "", transient
				}
				return do()
			},
			want: func(x trials.State, c *troubled) bool { return c.starts == jobs(x) && c.asked >= 3*c.starts },
		},
		{
			name: "a job whose start had an unknown outcome is not started again",
			start: func(asked int, _ driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error) {
				id, err := do()
				if asked%2 > 0 {
					return "", fmt.Errorf("sbatch: %w", driver.ErrUnknown)
				}
				return id, err
			},
			want: func(x trials.State, c *troubled) bool { return c.starts == jobs(x) },
		},
		{
			name: "a job that cannot be started holds up no other",
			start: func(asked int, spec driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error) {
				if spec.Env["PITCHPIPE_TRIAL"] == "1" && asked < 60 {
					return "", fmt.Errorf("sbatch: %w", driver.ErrUnknown)
				}
				return do()
			},
			want: func(x trials.State, _ *troubled) bool {
				for _, tr := range x.Trials[:3] {
					if len(tr.Reports) == 0 || (tr.Reports[0].At < 5) != (tr.Number > 1) {
						return false
					}
				}
				return true
			},
		},
		{
			name: "a job that its owner cancelled stays cancelled, and the search goes on",
			see: func(c *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if id != "j2" {
					return v, nil
				}
				return trials.View{Over: true, End: searcher.Cancelled, Detail: "cancelled: by alice"}, c.Stop(context.Background(), id)
			},
			want: func(x trials.State, _ *troubled) bool {
				tr := x.Trials[1]
				return tr.State == searcher.Stopped && tr.Attempt == 1 && tr.Reason == "cancelled: by alice" && len(x.Trials) == 9
			},
		},
		{
			name: "a trial whose job its scheduler holds fails, and its job is ended",
			see: func(_ *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if id == "j2" && !v.Over && len(v.Epochs) > 0 {
					v.Held = "it left with status 85 unasked"
				}
				return v, nil
			},
			want: func(x trials.State, c *troubled) bool {
				tr := x.Trials[1]
				return tr.State == searcher.Failed && tr.Attempt == 1 && tr.Reason == "its scheduler held it: it left with status 85 unasked" &&
					!c.byID("j2").stopped.IsZero() && c.again == 0 && len(x.Trials) == 9
			},
		},
		{
			name: "a trial whose epochs have no number for its quality fails, and says so",
			see: func(c *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				for i := range v.Epochs {
					if c.byID(id).trial == 2 {
						v.Epochs[i].Loss, v.Epochs[i].Quality = new(1.0), nil
					}
				}
				return v, nil
			},
			want: func(x trials.State, _ *troubled) bool {
				tr := x.Trials[1]
				return tr.State == searcher.Failed && tr.Reason == "none of its lines had a number for quality" && len(x.Trials) == 9
			},
		},
		{
			name: "a trial whose job is lost repeatedly fails, and the search goes on",
			see: func(c *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				c.mu.Lock()
				trial := c.byID(id).trial
				c.mu.Unlock()
				if trial != 2 {
					return v, nil
				}
				return trials.View{Over: true, End: searcher.Lost, Detail: "node fail"}, c.Stop(context.Background(), id)
			},
			want: func(x trials.State, _ *troubled) bool {
				tr := x.Trials[1]
				return tr.State == searcher.Failed && tr.Attempt == 3 && tr.Reason == "node fail" && len(x.Trials) == 9
			},
		},
		{
			name: "one job that cannot be looked at holds up no other",
			see: func(_ *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if id == "j1" && time.Since(v.Started) < time.Minute {
					return v, transient
				}
				return v, nil
			},
			want: func(x trials.State, _ *troubled) bool {
				last := x.Trials[8].Last()
				return last.Epoch > 0 && last.At < 60 && x.Trials[0].Last().Epoch > 0
			},
		},
		{
			name: "a job that was put back into the queue and did an epoch again counts it once, and pays for both",
			see: func(_ *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if id == "j1" && len(v.Epochs) > 1 {
					again := []tuning.Epoch{v.Epochs[0]}
					for _, e := range v.Epochs { // the second attempt waits an hour
						e.Attempt, e.Start, e.End = 2, e.Start.Add(time.Hour), e.End.Add(time.Hour)
						again = append(again, e)
					}
					v.Epochs = again
				}
				return v, nil
			},
			want: func(x trials.State, _ *troubled) bool {
				r := x.Trials[0].Last()
				n := float64(r.Epoch)
				return n > 2 && len(x.Trials[0].Reports) == r.Epoch && *r.Joules == 10*(n+1) && r.Seconds == n+1 && r.CoreHours < 0.01
			},
		},
		{
			name: "of a trial with an epoch that was not measured the joules of the others count, and a modelled part is named",
			see: func(_ *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				for i := range v.Epochs {
					switch {
					case id == "j1" && i == 1:
						v.Epochs[i].Joules, v.Epochs[i].Source = nil, ""
					case id == "j2" && i == 0:
						v.Epochs[i].Source = tuning.Modelled
					}
				}
				if id == "j3" && len(v.Epochs) > 1 { // its first epoch was seen, and the second was not
					v.Epochs = slices.Delete(v.Epochs, 1, 2)
				}
				return v, nil
			},
			want: func(x trials.State, _ *troubled) bool {
				r, second, third := x.Trials[0].Last(), x.Trials[1].Last(), x.Trials[2].Last()
				return third.Epoch > 2 && third.Joules == nil && third.Measured() == 10*float64(third.Epoch-1) && r.Epoch > 2 && r.Joules == nil && r.Measured() == 10*float64(r.Epoch-1) && r.Source == "rapl" &&
					second.Epoch > 1 && *second.Joules == 10*float64(second.Epoch) && second.Source == tuning.Modelled
			},
		},
		{
			name: "of a trial whose second job began with an epoch that was not seen the joules are unknown",
			see: func(c *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if c.byID(id).attempt == 2 {
					v.Epochs = v.Epochs[min(1, len(v.Epochs)):]
				}
				return v, nil
			},
			want: func(x trials.State, _ *troubled) bool {
				return best(x).Attempt > 1 && !slices.ContainsFunc(x.Trials, func(t trials.Trial) bool { return (t.Attempt > 1) != (t.Last().Joules == nil) })
			},
		},
		{
			name: "a job that fails before its first epoch counts with what it held, for the end of a search's core-hours too",
			see: func(c *cluster, id driver.JobID, v trials.View) (trials.View, error) {
				if id == "j1" {
					c.byID(id).stopped = c.byID(id).began
					v = trials.View{Over: true, End: searcher.Broken, Hours: new(5.0), Ran: 9000}
				}
				return v, nil
			},
			change: func(p *tuning.Policy) { p.Search.CoreHours = 5 },
			want: func(x trials.State, _ *troubled) bool {
				_, hours, _ := x.Searcher().Spent()
				return hours >= 5 && hours < 5.1 && x.Trials[0].Used().Seconds == 9000 &&
					x.Closing == "the budget of 5 core-hours is used up" && len(x.Trials) < 9
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &troubled{cluster: newCluster(9), start: tt.start, see: tt.see}
			if c.start == nil {
				c.start = func(_ int, _ driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error) { return do() }
			}
			if c.see == nil {
				c.see = func(_ *cluster, _ driver.JobID, v trials.View) (trials.View, error) { return v, nil }
			}
			p := policy()
			if tt.change != nil {
				tt.change(&p)
			}
			if x := play(t, c, p); !tt.want(x, c) || c.most > 3 {
				t.Errorf("%d starts, %d asked, %d at one time, %q: %+v", c.starts, c.asked, c.most, x.Closing, x.Trials)
			}
		})
	}
}

func TestASearchWhoseFoldersCannotBeMadeEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := trials.New(trials.Config{Jobs: newCluster(9), Store: newMemory(), Log: slog.New(slog.DiscardHandler)})
		x := begin(t, s, policy())
		if err := os.WriteFile(filepath.Join(x.Job.Dir, x.Name+".search"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if x = run(t, s); states(x)[searcher.Failed] == 0 || !strings.Contains(x.Trials[0].Reason, "not a directory") {
			t.Errorf("%q: %+v", x.Closing, x.Trials)
		}
	})
}

func TestAUserSeesWhyAJobDoesNotStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &troubled{cluster: newCluster(9), start: func(asked int, _ driver.Spec, do func() (driver.JobID, error)) (driver.JobID, error) {
			if asked == 1 {
				return "", driver.ErrTransient
			}
			return do()
		}}
		c.see = func(_ *cluster, _ driver.JobID, v trials.View) (trials.View, error) { return v, nil }
		s := several(t, c, newMemory(), 1)
		for _, want := range []string{driver.ErrTransient.Error(), ""} {
			synctest.Wait()
			if x, err := s.Get("s1"); err != nil || x.Trials[0].Trouble != want {
				t.Errorf("%v after the begin: %q (%v), want %q", time.Since(x.Created), x.Trials[0].Trouble, err, want)
			}
			time.Sleep(3 * time.Second)
		}
	})
}

// The best is what a search is for, also where a rung gave it up.
func TestTheCheckpointOfTheBestStaysAndThoseOfOthersThatWereStoppedDoNot(t *testing.T) {
	c := newCluster(9)
	c.value = func(x float64, epoch int) (float64, bool) {
		if epoch == 1 {
			return 10 + x, true
		}
		return -x, true
	}
	const cancelled = 5 // by somebody else than the search, so that its folder is not the search's to delete
	c.end = func(trial, _, _ int) searcher.End {
		return map[int]searcher.End{cancelled: searcher.Cancelled}[trial]
	}
	x := play(t, c, policy())
	b := best(x)
	if b.State != searcher.Stopped {
		t.Fatalf("the best is %s, and the test needs one that was stopped", b.State)
	}
	for _, tr := range x.Trials {
		if want := tr.State == searcher.Stopped && tr.Number != b.Number && tr.Number != cancelled; tr.Cleaned != want {
			t.Errorf("trial %d of which %d is the best is %s, deleted: %t", tr.Number, b.Number, tr.State, tr.Cleaned)
		}
	}
}

// jobs is how many a search had.
func jobs(x trials.State) int {
	return tuning.Sum(x.Trials, func(t trials.Trial) int { return len(t.Jobs) })
}

// full takes so many jobs of a user at a time.
type full struct {
	*cluster

	most  int
	asked int // in vain
}

func (c *full) Start(ctx context.Context, x trials.Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error) {
	running := 0
	for _, j := range c.jobs {
		if !c.view(j, time.Now()).Over {
			running++
		}
	}
	if running >= c.most {
		c.asked++
		return "", fmt.Errorf("QOSMaxSubmitJobPerUserLimit: %w", driver.ErrNoRoom)
	}
	return c.cluster.Start(ctx, x, id, spec)
}

func TestASearchWaitsWhileItsOwnerMayHaveNoMoreJobs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		most   int
		hasten time.Duration // how much faster the search's clock is
		want   func(x trials.State, asked int) bool
	}{
		{"until one of them has ended", 2, 1, func(x trials.State, _ int) bool {
			return len(x.Trials) == 9 && states(x)[searcher.Failed] == 0
		}},
		{"but not for ever where it has none that could end", 0, 10, func(x trials.State, asked int) bool {
			return asked < 1000 && x.Closing == "4 trials failed" && strings.Contains(x.Trials[0].Reason, "QOSMaxSubmitJobPerUserLimit")
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, start := &full{newCluster(9), tt.most, 0}, time.Now()
				s := trials.New(trials.Config{Jobs: c, Store: newMemory(), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return start.Add(tt.hasten * time.Since(start)) }})
				begin(t, s, policy())
				if x := run(t, s); !tt.want(x, c.asked) {
					t.Errorf("%d refused, %q: %+v", c.asked, x.Closing, x.Trials)
				}
			})
		})
	}
}
