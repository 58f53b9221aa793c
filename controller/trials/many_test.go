package trials_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// slow is a cluster that notes when jobs start, and takes its time.
type slow struct {
	*cluster

	takes  time.Duration
	at     []time.Time
	search []string
}

func (c *slow) Start(ctx context.Context, x trials.Search, id driver.RequestID, spec driver.Spec) (driver.JobID, error) {
	c.at, c.search = append(c.at, time.Now()), append(c.search, x.ID)
	select {
	case <-ctx.Done():
	case <-time.After(c.takes):
	}
	return c.cluster.Start(ctx, x, id, spec)
}

// several begins searches s1, s2 and so on in a service that runs until the test of the bubble is over.
func several(t *testing.T, c trials.Jobs, m *memory, n int) *trials.Service {
	t.Helper()
	s := trials.New(trials.Config{Jobs: c, Store: m, Log: slog.New(slog.DiscardHandler)})
	for i := range n {
		p := policy(func(p *tuning.Policy) { p.Search.Parallel = 4 })
		plan, err := searcher.PlanOf(p)
		if err != nil {
			t.Fatal(err)
		}
		x := trials.Search{ID: fmt.Sprintf("s%d", i+1), Name: "train", Owner: "alice", Created: time.Now(), Policy: p, Plan: plan, Job: trials.JobFile{Dir: t.TempDir()}}
		if _, err := s.Begin(t.Context(), x, 0); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return s
}

func TestSearchesShareOneSubmissionEachHalfSecondInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &slow{cluster: newCluster(9)}
		several(t, c, newMemory(), 3)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for i := range c.at[1:] {
			if d := c.at[i+1].Sub(c.at[i]); d < 500*time.Millisecond {
				t.Errorf("a job starts %v after the one before", d)
			}
		}
		want := []string{"s1", "s2", "s3", "s1", "s2", "s3", "s1", "s2", "s3"}
		if got := c.search[:min(9, len(c.search))]; !slices.Equal(got, want) {
			t.Errorf("jobs start for %v, want %v", got, want)
		}
	})
}

func TestASchedulerThatHangsHoldsUpNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := several(t, &slow{cluster: newCluster(9), takes: time.Hour}, newMemory(), 1)
		time.Sleep(time.Second)
		began := time.Now()
		if x, err := s.Get("s1"); err != nil || len(x.Trials) != 4 {
			t.Errorf("%d trials (%v), want 4", len(x.Trials), err)
		}
		if n := len(s.List(func(string) bool { return true })); n != 1 || time.Since(began) > 0 {
			t.Errorf("%d searches after %v, want 1 at once", n, time.Since(began))
		}
	})
}

func TestOldSearchesAreForgottenAndOthersStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		s := several(t, newCluster(9), m, 2)
		time.Sleep(time.Minute)
		began := time.Now()
		x, err := s.Get("s2")
		if err != nil || !x.Over {
			t.Fatalf("%+v (%v), want a search that is over", x.Course, err)
		}
		if err := s.Resume(t.Context(), "s2", 12); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Prune(t.Context(), x.Ended.Add(-time.Hour)); n != 0 || err != nil {
			t.Errorf("%d searches forgotten (%v), want none that ended just now", n, err)
		}
		if n, err := s.Prune(t.Context(), began); n != 1 || err != nil {
			t.Errorf("%d searches forgotten (%v), want the one that is over", n, err)
		}
		left, err := m.All(t.Context())
		if err != nil || len(left) != 1 || left[0].ID != "s2" {
			t.Errorf("%d searches are stored (%v), want s2", len(left), err)
		}
		if _, err := s.Get("s1"); !errors.Is(err, trials.ErrNotFound) {
			t.Errorf("s1: %v, want %v", err, trials.ErrNotFound)
		}
	})
}
