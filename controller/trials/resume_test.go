package trials_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
)

func TestASearchThatIsStoppedBeforeSomeFirstJobsGoesOn(t *testing.T) {
	const ms = time.Millisecond
	for _, waits := range [][]time.Duration{ // before a stop, before a resume, and so on
		{200 * ms, 2000 * ms},
		{200 * ms, 2000 * ms, 100 * ms, 2000 * ms, 5000 * ms, 2000 * ms},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := several(t, newCluster(9), newMemory(), 1)
			for i, wait := range waits {
				time.Sleep(wait)
				do := func() error { return s.Stop(t.Context(), "s1", "alice") }
				if i%2 > 0 {
					do = func() error { return s.Resume(t.Context(), "s1", 0) }
				}
				if err := do(); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			x, err := s.Get("s1")
			if err != nil || !x.Settled() || x.Closing != "" || states(x)[searcher.Done] == 0 {
				t.Fatalf("%v: over %t, %q: %+v", err, x.Over, x.Closing, x.Trials)
			}
			replays(t, x)
			for _, tr := range x.Trials {
				if len(tr.Reports) == 0 {
					t.Errorf("trial %d of jobs %q has no epoch", tr.Number, tr.Jobs)
				}
			}
			if _, is := s.Lineages()[""]; is {
				t.Error("a job that never was is a trial")
			}
		})
	}
}

func TestAResumeThatFindsNothingToDoLeavesASearchThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := trials.New(trials.Config{Jobs: newCluster(9), Store: newMemory(), Log: slog.New(slog.DiscardHandler)})
		begin(t, s, policy())
		run(t, s)
		if err := s.Resume(t.Context(), "s1", 0); err != nil {
			t.Fatal(err)
		}
		if n, err := s.Prune(t.Context(), time.Now().Add(-24*time.Hour)); n != 0 || err != nil {
			t.Errorf("%d searches forgotten (%v), want none that ended today", n, err)
		}
		if x, err := s.Get("s1"); err != nil || x.Ended.IsZero() {
			t.Errorf("%+v (%v), want an end", x.Course, err)
		}
	})
}

func TestAResumePastABoundIsRefusedAndChangesNothing(t *testing.T) {
	for _, tt := range []struct {
		bound func(*tuning.Search)
		end   searcher.End // of each job after its first epoch
		why   string
	}{
		{func(s *tuning.Search) { s.Energy = 200 }, "", "the budget of 200J is used up"},
		{func(s *tuning.Search) { s.Time = 7 * time.Second }, "", "the budget of 7s is used up"},
		{func(s *tuning.Search) { s.Failures = 2 }, searcher.Broken, "3 trials failed"},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(9)
			c.end = func(int, int, int) searcher.End { return tt.end }
			s := trials.New(trials.Config{Jobs: c, Store: newMemory(), Log: slog.New(slog.DiscardHandler)})
			begin(t, s, policy(func(p *tuning.Policy) { tt.bound(p.Search) }))
			was := run(t, s)
			time.Sleep(time.Hour)
			if err := s.Resume(t.Context(), "s1", 12); !errors.Is(err, trials.ErrConflict) || !strings.Contains(err.Error(), tt.why) {
				t.Errorf("%v, want %q", err, tt.why)
			}
			x, err := s.Get("s1")
			if err != nil || x.Seq != was.Seq || x.Plan.Trials != was.Plan.Trials || !x.Ended.Equal(was.Ended) {
				t.Errorf("%v: %d trials, %+v; want %+v", err, x.Plan.Trials, x.Course, was.Course)
			}
		})
	}
}
