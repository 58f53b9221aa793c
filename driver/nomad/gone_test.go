package nomad_test

import (
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// Nomad collects what has ended after some hours. A job that waited for its time, and
// began and ended while no controller was there, is not begun again for its being late.
func TestAJobThatNomadBeganAndForgotIsNotBegunAgain(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"unseen":                          func(t *testing.T, s *story) { goneUnseen(t, s, false) },
		"unseen, with a move in progress": func(t *testing.T, s *story) { goneUnseen(t, s, true) },
	})
}

func goneUnseen(t *testing.T, s *story, moving bool) {
	job, in := s.deadBefore(t, 4*time.Second, moving)
	id := strings.TrimSuffix(string(job.ID), "@"+s.ns)
	eventually(t, "Nomad begins it, it ends, and is forgotten", func() bool {
		q := s.read()
		q.Prefix = id + "/periodic-"
		list, _, err := s.clean.Jobs().List(q)
		if err != nil || len(list) != 1 || list[0].Status != "dead" {
			return false
		}
		_, _, err = s.clean.Jobs().Deregister(list[0].ID, true, s.write())
		return err == nil
	})
	s.open(t)
	got := s.wait(t, job.ID, "it is over", ended)
	if got.State != driver.Lost || len(got.Attempts) != 0 {
		t.Errorf("%s (%s) after %+v, want that nobody knows what became of it", got.State, got.Detail, got.Attempts)
	}
	if step, err := s.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepFinished {
		t.Errorf("step %+v (%v), want %s", step, err, driver.StepFinished)
	}
	eventually(t, "its schedule is taken away", func() bool { return *s.nomadJob(t, job.ID).Stop })
	q := s.read()
	q.Prefix = id + "/periodic-"
	if list, _, err := s.clean.Jobs().List(q); err != nil || len(list) != 0 {
		t.Errorf("it was begun again: %d children (%v)", len(list), err)
	}
}

// deadBefore starts a job that waits for its time, asks for a change of it where it is to
// be moved, and has the controller die before that time. A machine that was too busy for
// that gets another job and more time.
func (s *story) deadBefore(t *testing.T, wait time.Duration, moving bool) (driver.Job, driver.Intent) {
	t.Helper()
	spec := s.job(t, drivertest.Behaviour{Name: "gone-" + wait.String(), Epochs: 1})
	spec.NotBefore = time.Now().Add(wait)
	job, err := s.d.Start(t.Context(), driver.RequestID("request-"+wait.String()), spec)
	if err != nil {
		t.Fatal(err)
	}
	in := driver.Intent{ID: "late", Job: job.ID, Fingerprint: job.Fingerprint, Change: driver.Change{TimeLimit: time.Hour}}
	soon := false // it was about to begin when it was to be changed
	if moving {
		step, err := s.d.Advance(t.Context(), in)
		soon = step.Kind == driver.StepRunning
		if late := time.Now().After(spec.NotBefore); err != nil || step.Kind != driver.StepChanged && !soon && !late {
			t.Fatalf("step %+v (%v), want %s", step, err, driver.StepChanged)
		}
	}
	if err := s.d.Close(); err != nil { // the controller dies
		t.Fatal(err)
	}
	if !soon && time.Now().Before(spec.NotBefore.Add(-time.Second)) {
		return job, in
	}
	s.open(t)
	return s.deadBefore(t, 2*wait, moving)
}
