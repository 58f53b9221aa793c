package reconcile_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

// returned is a scheduler that answers otherwise for one job, as when it has given the id of a job that ended to another.
type returned struct {
	*sim.Cluster

	id      driver.JobID // that is asked for
	next    driver.JobID // whose job is reported
	changed func(*driver.Job)
	err     error
}

func (r *returned) Get(ctx context.Context, id driver.JobID) (driver.Job, error) {
	if id != r.id || r.next == "" && r.changed == nil && r.err == nil {
		return r.Cluster.Get(ctx, id)
	}
	if r.err != nil {
		return driver.Job{}, r.err
	}
	if r.next != "" {
		id = r.next
	}
	job, err := r.Cluster.Get(ctx, id)
	job.ID = r.id
	if r.changed != nil {
		r.changed(&job)
	}
	return job, err
}

// answering submits a job to a scheduler that can answer otherwise for it.
func (w *world) answering(t *testing.T, name string) *returned {
	t.Helper()
	s := &returned{Cluster: w.cluster}
	w.scheduler = s
	w.restart()
	s.id = w.mustSubmit(t, name, usual)
	return s
}

// ended is a world with a job whose story is over, and the scheduler that tells of it.
func ended(t *testing.T, w *world) (*reconcile.Record, *returned) {
	t.Helper()
	w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
	s := w.answering(t, "first")
	rec, _ := w.end(t, s.id)
	return rec, s
}

func TestAJobByTheIDOfOneThatIsOverBeginsAStoryOfItsOwn(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		old, s := ended(t, w)
		time.Sleep(time.Hour)
		s.next = w.mustSubmit(t, "second", usual)
		for range 3 {
			if err := w.look(s.id); err != nil {
				t.Fatal(err)
			}
		}
		rec, err := w.records.Load(w.ctx, s.id)
		if err != nil || rec.Phase.Over() || rec.Name != "second" || !rec.Submitted.After(old.Ended) || len(rec.History) == 0 {
			t.Fatalf("the record is %+v (%v), want one of the second job that goes on", rec, err)
		}
		all, err := w.records.All(w.ctx)
		if err != nil || len(all) != 2 {
			t.Fatalf("%d records (%v), want that of the first job, too", len(all), err)
		}
		i := slices.IndexFunc(all, func(r *reconcile.Record) bool { return r.Job != s.id })
		if kept := all[i]; !strings.HasPrefix(string(kept.Job), string(s.id)+"~") || kept.Name != "first" || len(kept.History) != len(old.History) || !kept.Phase.Over() {
			t.Errorf("kept is %+v, want the story of the first job", kept)
		}
		if err := w.look(all[i].Job); err != nil {
			t.Errorf("a look at what is kept: %v", err)
		}
	})
}

func TestAJobThatIsOverStaysSo(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		told func(rec *reconcile.Record, s *returned)
	}{
		{"as it was", func(*reconcile.Record, *returned) {}},
		{"whose submission is reported as its last restart", func(rec *reconcile.Record, s *returned) {
			s.changed = func(j *driver.Job) { j.Submitted = rec.OverAt().Add(-time.Second) }
		}},
		{"that ended, and whose submission is reported anew", func(rec *reconcile.Record, s *returned) {
			s.changed = func(j *driver.Job) { j.Submitted = rec.OverAt().Add(time.Second) }
		}},
		{"that its scheduler's clock, which is ahead, has submitted later", func(rec *reconcile.Record, s *returned) {
			s.changed = func(j *driver.Job) { j.Submitted, j.State = rec.Submitted, driver.Running }
		}},
		{"that its scheduler forgot", func(_ *reconcile.Record, s *returned) { s.err = driver.ErrNotFound }},
		{"whose scheduler is away", func(_ *reconcile.Record, s *returned) { s.err = driver.ErrTransient }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				old, s := ended(t, w)
				tc.told(old, s)
				saves := w.records.saves
				if err := w.look(s.id); err != nil {
					t.Error(err)
				}
				if w.records.saves != saves {
					t.Errorf("%d saves, want none", w.records.saves-saves)
				}
			})
		})
	}
}

func TestNoStoryBeginsBeforeTheOldOneIsKept(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		old, s := ended(t, w)
		time.Sleep(time.Hour)
		s.next = w.mustSubmit(t, "second", usual)
		w.records.failNext = true
		if err := w.look(s.id); err == nil {
			t.Error("no error where the old story could not be kept")
		}
		if rec, err := w.records.Load(w.ctx, s.id); err != nil || rec.Name != old.Name {
			t.Errorf("the record is of %s (%v), want the first job's still", rec.Name, err)
		}
		if err := w.look(s.id); err != nil {
			t.Fatal(err)
		}
		if all, err := w.records.All(w.ctx); err != nil || len(all) != 2 {
			t.Errorf("%d records (%v), want two at the second try", len(all), err)
		}
	})
}

func TestWhatIsPrunedGivesWay(t *testing.T) {
	t.Parallel()
	inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
		old, s := ended(t, w)
		if err := w.records.Save(w.ctx, old.Rest()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s.next = w.mustSubmit(t, "second", usual)
		if err := w.look(s.id); err != nil {
			t.Fatal(err)
		}
		if all, err := w.records.All(w.ctx); err != nil || len(all) != 1 || all[0].Name != "second" {
			t.Errorf("%d records (%v), want that of the second job", len(all), err)
		}
	})
}
