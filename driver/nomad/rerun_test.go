package nomad_test

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// ranAgain: an owner's registration after the end of his job is a new job under the same
// id, whether the one before was changed here or not.
func ranAgain(t *testing.T, s *story) {
	be := drivertest.Behaviour{Epochs: 3, Epoch: epoch}
	other := func(name string) func(string) string {
		return func(file string) string {
			return strings.Replace(file, `    task "main" {`, "    task \"main\" {\n      meta { again = \""+name+"\" }", 1)
		}
	}
	id := s.register(t, be, nil)
	first := s.wait(t, id, "it ends", ended)
	if s.register(t, mover(long), other("second")) != id {
		t.Fatal("the second run has another id")
	}
	second := s.wait(t, id, "it runs again", running)
	if second.Attempt != 1 || !second.Submitted.After(first.Submitted) || second.Fingerprint == first.Fingerprint {
		t.Errorf("run again it is in attempt %d, submitted %v (%v before), fingerprint the same: %v", second.Attempt, second.Submitted, first.Submitted, second.Fingerprint == first.Fingerprint)
	}
	s.works(t, id)
	s.drives(t, s.intent(second, "changed", driver.Change{TimeLimit: time.Hour}), driver.StepStarted)
	second = s.finish(t, id)
	if second.State != driver.Succeeded || len(second.Attempts) != 2 || second.Attempts[1].Intent != "changed" {
		t.Errorf("the second run is %s after the attempts %+v", second.State, second.Attempts)
	}
	s.register(t, mover(long), other("third"))
	third := s.wait(t, id, "it runs a third time", func(j driver.Job) bool { return j.Submitted.After(second.Submitted) && j.State == driver.Running })
	s.works(t, id)
	if step, err := s.d.Advance(t.Context(), s.intent(third, "changed", driver.Change{TimeLimit: time.Hour})); err != nil || step.Kind == driver.StepStarted {
		t.Errorf("an intent of a name that one of the job before had: %+v (%v), want a step of its own", step, err)
	}
	s.drive(t, s.intent(third, "changed", driver.Change{TimeLimit: time.Hour}))
	third = s.finish(t, id)
	s.register(t, be, other("fourth"))
	fourth := s.wait(t, id, "it runs a fourth time", func(j driver.Job) bool { return j.Submitted.After(third.Submitted) && j.State.Ended() })
	if fourth.State != driver.Succeeded || len(fourth.Attempts) != 1 || !fourth.Change.Empty() || fourth.Attempts[0].Intent != "" {
		t.Errorf("the fourth run is %s after the attempts %+v under %+v", fourth.State, fourth.Attempts, fourth.Change)
	}
	if again := s.get(t, id); len(again.Attempts) != 1 || again.Submitted != fourth.Submitted {
		t.Errorf("asked again: %+v", again)
	}
}

// stoppedStays: Nomad makes a version of a stop, which has the change like the one
// before. It isn't one that the owner wrote.
func stoppedStays(t *testing.T, s *story) {
	id, job := s.runs(t, mover(long), nil)
	in := s.intent(job, "changed", driver.Change{Env: map[string]string{"BATCH_SIZE": "2"}})
	s.drives(t, in, driver.StepStarted)
	s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	done(t)(s.clean.Jobs().Deregister(*s.nomadJob(t, id).ID, false, s.write()))
	got := s.wait(t, id, "it ends", ended)
	if got.State != driver.Cancelled || got.Fingerprint != job.Fingerprint || len(got.Attempts) != 2 || got.Attempts[1].Change.Env["BATCH_SIZE"] != "2" {
		t.Errorf("%s, its owner's file another: %v, after %+v", got.State, got.Fingerprint != job.Fingerprint, got.Attempts)
	}
}

// lateStays: the status with which a job left is not that with which it ended where its
// restart policy was sooner than the change.
func lateStays(t *testing.T, s *story) {
	id := s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, "attempts = 0\n      mode     = \"fail\"", "attempts = 5\n      interval = \"1h\"\n      delay    = \"1s\"\n      mode     = \"fail\"", 1)
	})
	job := s.started(t, id)
	in := s.intent(job, "late", driver.Change{TimeLimit: time.Hour})
	s.ask(t, in)
	eventually(t, "it left and was started again", func() bool {
		n := 0
		for _, e := range s.allocs(t, id)[0].TaskStates["main"].Events {
			if e.Type == api.TaskStarted {
				n++
			}
		}
		return n == 2
	})
	s.drives(t, in, driver.StepAbandoned)
	if got := s.finish(t, id); got.State != driver.Succeeded || len(got.Attempts) != 1 {
		t.Errorf("%s after %+v, want %s after one attempt", got.State, got.Attempts, driver.Succeeded)
	}
	if n := s.proxy.count("PUT /v1/jobs"); n != 0 || *s.nomadJob(t, id).Version != 0 {
		t.Errorf("%d registrations, want none", n)
	}
}

// grownInQueue: a job that has run before waits for room under its id, and is given more
// than there is room for. Where the dry run tells so, nothing is registered. Where it was
// too early to tell, the registration is taken back, once, and is not a run of its owner's.
func grownInQueue(early bool) func(t *testing.T, s *story) {
	return func(t *testing.T, s *story) {
		id := s.register(t, drivertest.Behaviour{Epochs: 1}, nil)
		first := s.wait(t, id, "it ends", ended)
		impossible := func(file string) string {
			return strings.Replace(file, `    task "main" {`, "    constraint {\n      attribute = \"${meta.none}\"\n      value     = \"there\"\n    }\n    task \"main\" {", 1)
		}
		s.register(t, drivertest.Behaviour{Epochs: 1}, impossible)
		second := s.wait(t, id, "it waits for room", func(j driver.Job) bool {
			return j.State == driver.Pending && j.Submitted.After(first.Submitted)
		})
		registrations := 0
		if early {
			registrations = 2 // the change and its return
			planned := func(path string) bool { return strings.HasSuffix(path, "/plan") }
			edit(s.proxy, planned, func(plan *api.JobPlanResponse) { plan.FailedTGAllocs = nil })
		}
		in := s.intent(second, "larger", driver.Change{MemoryBytes: 256 << 20})
		for range 2 { // asked again it answers the same
			s.drives(t, in, driver.StepNoRoom)
		}
		got := s.get(t, id)
		if got.State != driver.Pending || got.Submitted != second.Submitted || got.Fingerprint != second.Fingerprint || !got.Change.Empty() {
			t.Errorf("%s, submitted %v and %v, under %+v; want the job that waited", got.State, second.Submitted, got.Submitted, got.Change)
		}
		if n := s.proxy.count("PUT /v1/jobs"); n != registrations {
			t.Errorf("%d registrations, want %d", n, registrations)
		}
	}
}
