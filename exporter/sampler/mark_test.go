package sampler_test

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/sampler"
)

// What a controller reads in a job's output counts as what the job tells, and never
// twice: by whom, as which line of the output, and what was told.
func TestWhatIsToldOnAJobsBehalfCountsOnce(t *testing.T) {
	t.Parallel()
	type say struct {
		inside bool // the job tells by itself
		epoch  int  // 0 = it saved
		nth    int
		loss   float64
		after  time.Duration
	}
	for _, tc := range []struct {
		name  string
		says  []say
		marks string
		saves int
	}{
		{"each line", []say{{epoch: 1, nth: 1}, {epoch: 2, nth: 2}}, "1 2", 0},
		{"several lines of an epoch", []say{{epoch: 1, nth: 1, loss: .5}, {epoch: 1, nth: 2, loss: .4}, {epoch: 1, nth: 3, loss: .4}}, "1(0.5) 1(0.4) 1(0.4)", 0},
		{"the same report again, whose answer was lost", []say{{epoch: 1, nth: 1}, {epoch: 1, nth: 1}}, "1", 0},
		{"a reader that begins anew", []say{{epoch: 1, nth: 1}, {epoch: 2, nth: 2}, {epoch: 1, nth: 1}, {epoch: 2, nth: 2}, {epoch: 3, nth: 3}}, "1 2 3", 0},
		{"a reader that begins anew with an output that lost its beginning", []say{{epoch: 1, nth: 1}, {epoch: 2, nth: 2}, {epoch: 2, nth: 1}, {epoch: 3, nth: 2}}, "1 2 3", 0},
		{"a job that begins again with its first epoch", []say{{epoch: 1, nth: 1}, {epoch: 2, nth: 2}, {epoch: 1, nth: 3}}, "1 2 1", 0},
		{"lines that are not counted, each epoch once", []say{{epoch: 1}, {epoch: 2}, {epoch: 1}, {epoch: 2}, {epoch: 3}}, "1 2 3", 0},
		{"the job tells first", []say{{inside: true, epoch: 1}, {epoch: 1, nth: 1}, {inside: true, epoch: 2}, {epoch: 2, nth: 2}}, "1 2", 0},
		{"the job tells after", []say{{epoch: 1, nth: 1}, {inside: true, epoch: 1}, {epoch: 2, nth: 2}, {inside: true, epoch: 2}}, "1 2", 0},
		{"the controller comes late", []say{{inside: true, epoch: 1}, {inside: true, epoch: 2}, {epoch: 1, nth: 1}, {epoch: 2, nth: 2}, {epoch: 3, nth: 3}}, "1 2 3", 0},
		{"each save", []say{{nth: 1}, {nth: 2, after: time.Millisecond}, {nth: 3, after: time.Hour}}, "", 3},
		{"no save that is read again", []say{{nth: 1}, {nth: 2, after: time.Minute}, {nth: 1, after: time.Minute}, {nth: 2, after: time.Minute}}, "", 2},
		{"a save that the job tells too", []say{{inside: true}, {nth: 1}, {nth: 2, after: time.Minute}, {inside: true}}, "", 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.pids[77] = local("7")
				w.begin("7", 1)
				s, store := run(t, w)
				for _, say := range tc.says {
					time.Sleep(say.after)
					r := api.Report{Saved: say.epoch == 0, Epoch: say.epoch, Nth: say.nth, Time: time.Now()}
					if say.loss > 0 {
						r.Loss = &say.loss
					}
					var err error
					if say.inside {
						err = s.Mark(t.Context(), who(77, 1000), r)
					} else {
						err = s.MarkFor(t.Context(), "local/7", 1, r)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				if diff := cmp.Diff(tc.marks, marked(t, store, "7")); diff != "" {
					t.Errorf("marks (-want +got):\n%s", diff)
				}
				if got := see(t, store, "7").Job.Saves; got != tc.saves {
					t.Errorf("%d saves, want %d", got, tc.saves)
				}
			})
		})
	}
}

// Each line of an output counts once, however often its reader starts again.
func TestEachLineOfAnOutputCountsOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		lines := rapid.IntRange(1, 30).Draw(rt, "lines")
		reads := rapid.SliceOfN(rapid.IntRange(0, lines), 1, 6).Draw(rt, "how far each reader comes")
		synctest.Test(t, func(t *testing.T) {
			w := newWorld()
			w.begin("7", 1)
			s, store := run(t, w)
			furthest := 0
			for _, upTo := range reads {
				furthest = max(furthest, upTo)
				for n := 1; n <= upTo; n++ {
					// Two lines for each epoch, the second like the first in every third.
					loss := float64(n)
					if n%6 < 2 {
						loss = 0
					}
					if err := s.MarkFor(t.Context(), "7", 0, api.Report{Epoch: (n + 1) / 2, Loss: &loss, Nth: n, Time: time.Now()}); err != nil {
						t.Fatal(err)
					}
				}
			}
			marks := 0
			for _, sample := range see(t, store, "7").Samples {
				if sample.Mark != nil {
					marks++
					if sample.Mark.Nth != marks {
						t.Fatalf("mark %d is line %d", marks, sample.Mark.Nth)
					}
				}
			}
			if marks != furthest {
				t.Fatalf("%d marks of %d lines", marks, furthest)
			}
		})
	})
}

func TestAMarkOnAJobsBehalfHasTheCountersOfTheMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s, store := run(t, w)
		wait(1010 * time.Millisecond)
		w.begin("7", 1)
		wait(10 * time.Millisecond) // no look for jobs has seen it
		read := time.Now().Add(-5 * time.Millisecond)
		if err := s.MarkFor(t.Context(), "local/7", 1, api.Report{Epoch: 1, Time: read}); err != nil {
			t.Fatal(err)
		}
		win := see(t, store, "7")
		last := win.Samples[len(win.Samples)-1]
		if last.Mark == nil || !last.Mark.Time.Equal(read) || last.Values[api.ColCPUSeconds] == 0 {
			t.Errorf("last sample %+v, want the mark of epoch 1 with the job's counters", last)
		}
		// A time that its clock cannot know is the exporter's.
		for _, odd := range []time.Time{{}, time.Now().Add(time.Hour), time.Now().Add(-time.Hour)} {
			if err := s.MarkFor(t.Context(), "local/7", 1, api.Report{Epoch: 2, Nth: 1000 + odd.Second(), Time: odd}); err != nil {
				t.Fatal(err)
			}
		}
		for _, sample := range see(t, store, "7").Samples {
			if sample.Mark != nil && sample.Mark.Epoch == 2 && !sample.Mark.Time.Equal(time.Now()) {
				t.Errorf("mark at %v, want the exporter's own time %v", sample.Mark.Time, time.Now())
			}
		}
	})
}

func TestAJobThatIsNotThereTakesNoMark(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.begin("7", 1)
		s, store := run(t, w)
		for name, err := range map[string]error{
			"another id":      s.MarkFor(t.Context(), "local/8", 1, api.Report{Epoch: 1}),
			"another manager": s.MarkFor(t.Context(), "nomad/7", 1, api.Report{Epoch: 1}),
			"another attempt": s.MarkFor(t.Context(), "local/7", 2, api.Report{Epoch: 1}),
		} {
			if !errors.Is(err, sampler.ErrNoJob) {
				t.Errorf("%s: %v, want %v", name, err, sampler.ErrNoJob)
			}
		}
		if got := marked(t, store, "7"); got != "" {
			t.Errorf("marks %s", got)
		}
	})
}

// The last lines of a job are usually read when it is gone.
func TestAMarkThatComesAfterTheEndStandsAtTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.pids[77] = local("7")
		w.begin("7", 1)
		s, store := run(t, w)
		wait(1500 * time.Millisecond)
		tell := func(epoch int) {
			t.Helper()
			if err := s.MarkFor(t.Context(), "local/7", 1, api.Report{Epoch: epoch, Nth: epoch, Time: time.Now()}); err != nil {
				t.Errorf("epoch %d: %v", epoch, err)
			}
		}
		tell(1)
		if err := s.Mark(t.Context(), who(77, 1000), api.Report{Epoch: 2}); err != nil {
			t.Fatal(err)
		}
		w.end("7")
		ended := time.Now()
		wait(3 * time.Second)
		tell(2) // which the job told by itself
		tell(3)
		tell(3)
		if err := s.MarkFor(t.Context(), "local/7", 1, api.Report{Saved: true, Nth: 1}); err != nil {
			t.Error(err)
		}
		win := see(t, store, "7")
		if got := marked(t, store, "7"); got != "1 2 3" || win.Job.Saves != 1 {
			t.Errorf("marks %s and %d saves, want 1 2 3 and 1", got, win.Job.Saves)
		}
		last := win.Samples[len(win.Samples)-1]
		if math.Abs(last.Values[api.ColCPUSeconds]-1.5) > 1e-9 || last.Time.Sub(ended) > 250*time.Millisecond {
			t.Errorf("the last mark is at %v with %v CPU seconds, want those of the end: %v, 1.5", last.Time, last.Values[api.ColCPUSeconds], ended)
		}
		wait(16 * time.Minute) // forgotten
		if err := s.MarkFor(t.Context(), "local/7", 1, api.Report{Epoch: 4}); !errors.Is(err, sampler.ErrNoJob) {
			t.Errorf("long after the end: %v, want %v", err, sampler.ErrNoJob)
		}
	})
}
