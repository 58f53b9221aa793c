package nomad_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// What is on record of jobs that Nomad has forgotten is not kept for ever.
func TestRecordsOfJobsThatNomadHasForgottenArePruned(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"one that ended":                      func(t *testing.T, s *story) { forgets(t, s, drivertest.Behaviour{Epochs: 1}, ended) },
		"one that was purged while it ran":    func(t *testing.T, s *story) { forgets(t, s, mover(long), running) },
		"one that its owner ran again":        forgetsRerun,
		"one that Nomad knows is on the list": keeps,
	})
}

// aged makes the driver look every moment, by a clock that jumps ahead when told to.
func (s *story) aged(t *testing.T) (after func(time.Duration)) {
	t.Helper()
	var ahead atomic.Int64
	if err := s.d.Close(); err != nil {
		t.Fatal(err)
	}
	s.cfg.Resync = 200 * time.Millisecond
	s.cfg.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s.open(t)
	return func(d time.Duration) { ahead.Add(int64(d)) }
}

func (s *story) records(t *testing.T) int {
	t.Helper()
	names, err := s.cfg.Journal.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func forgets(t *testing.T, s *story, be drivertest.Behaviour, until func(driver.Job) bool) {
	after := s.aged(t)
	job, err := s.d.Start(t.Context(), "request", s.job(t, be))
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t, job.ID, "it is as wanted", until)
	if n := s.records(t); n != 1 {
		t.Fatalf("%d records, want that of the job", n)
	}
	done(t)(s.clean.Jobs().Deregister(strings.TrimSuffix(string(job.ID), "@"+s.ns), true, s.write()))
	lost := func() bool {
		again, err := s.d.Start(t.Context(), "request", s.job(t, be)) // it is that job
		return err == nil && again.ID == job.ID && again.State == driver.Lost
	}
	if !until(driver.Job{State: driver.Succeeded}) {
		eventually(t, "it is seen to be missing, and lost after a day", func() bool {
			_, err := s.d.Get(t.Context(), job.ID)
			if after(time.Hour); err != nil && !errors.Is(err, driver.ErrNotFound) {
				t.Fatal(err)
			}
			return lost()
		})
	}
	if n := s.records(t); n != 1 {
		t.Errorf("%d records, want it kept for a while", n)
	}
	after(31 * 24 * time.Hour)
	eventually(t, "nothing of it is on record", func() bool {
		after(time.Hour) // it is looked for now and then
		return s.records(t) == 0
	})
	if _, err := s.d.Get(t.Context(), job.ID); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("Get: %v, want %v", err, driver.ErrNotFound)
	}
}

func keeps(t *testing.T, s *story) {
	after := s.aged(t)
	old, err := s.d.Start(t.Context(), "old", s.job(t, drivertest.Behaviour{Name: "old", Epochs: 1}))
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.d.Start(t.Context(), "other", s.job(t, drivertest.Behaviour{Name: "other", Epochs: 1}))
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t, old.ID, "it ends", ended)
	s.wait(t, other.ID, "it ends", ended)
	done(t)(s.clean.Jobs().Deregister(strings.TrimSuffix(string(other.ID), "@"+s.ns), true, s.write()))
	after(31 * 24 * time.Hour)
	eventually(t, "the other's are pruned", func() bool {
		after(time.Hour)
		return s.records(t) == 1
	})
	again, err := s.d.Start(t.Context(), "old", s.job(t, drivertest.Behaviour{Name: "old", Epochs: 1}))
	if err != nil || again.ID != old.ID || again.State != driver.Succeeded {
		t.Errorf("its request repeated: %s %s (%v), want that job", again.ID, again.State, err)
	}
}

// What its owner runs again is of no request any more, but a repeated one is that job.
func forgetsRerun(t *testing.T, s *story) {
	after := s.aged(t)
	job, err := s.d.Start(t.Context(), "request", s.job(t, drivertest.Behaviour{Epochs: 1}))
	if err != nil {
		t.Fatal(err)
	}
	s.wait(t, job.ID, "it ends", ended)
	again := s.nomadJob(t, job.ID)
	again.Priority = new(51)
	done(t)(s.clean.Jobs().Register(again, s.write()))
	s.wait(t, job.ID, "it is its owner's, and ends", func(j driver.Job) bool { return ended(j) && j.Request == "" })
	if same, err := s.d.Start(t.Context(), "request", s.job(t, drivertest.Behaviour{Epochs: 1})); err != nil || same.ID != job.ID || !ended(same) {
		t.Errorf("its request repeated: %s (%v), want the job as it is", same.State, err)
	}
	done(t)(s.clean.Jobs().Deregister(strings.TrimSuffix(string(job.ID), "@"+s.ns), true, s.write()))
	after(31 * 24 * time.Hour)
	eventually(t, "nothing of it is on record", func() bool {
		after(time.Hour)
		return s.records(t) == 0
	})
	made, err := s.d.Start(t.Context(), "request", s.job(t, drivertest.Behaviour{Epochs: 1}))
	if err != nil || made.Request != "request" {
		t.Errorf("its request repeated: %s %q (%v), want another job", made.State, made.Request, err)
	}
}
