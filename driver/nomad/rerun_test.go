package nomad_test

import (
	"strings"
	"testing"
	"time"

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
	if s.register(t, mover(60), other("second")) != id {
		t.Fatal("the second run has another id")
	}
	second := s.wait(t, id, "it runs again", running)
	if second.Attempt != 1 || !second.Submitted.After(first.Submitted) || second.Fingerprint == first.Fingerprint {
		t.Errorf("run again it is in attempt %d, submitted %v (%v before), fingerprint the same: %v", second.Attempt, second.Submitted, first.Submitted, second.Fingerprint == first.Fingerprint)
	}
	s.epochs(t, id, 2)
	if step := s.drive(t, s.intent(second, "changed", driver.Change{TimeLimit: time.Hour})); step.Kind != driver.StepStarted {
		t.Fatalf("step %+v, want %s", step, driver.StepStarted)
	}
	second = s.wait(t, id, "its second run ends", ended)
	if second.State != driver.Succeeded || len(second.Attempts) != 2 || second.Attempts[1].Intent != "changed" {
		t.Errorf("the second run is %s after the attempts %+v", second.State, second.Attempts)
	}
	s.register(t, mover(20), other("third"))
	third := s.wait(t, id, "it runs a third time", func(j driver.Job) bool { return j.Submitted.After(second.Submitted) && j.State == driver.Running })
	s.epochs(t, id, 2)
	if step, err := s.d.Advance(t.Context(), s.intent(third, "changed", driver.Change{TimeLimit: time.Hour})); err != nil || step.Kind == driver.StepStarted {
		t.Errorf("an intent of a name that one of the job before had: %+v (%v), want a step of its own", step, err)
	}
	s.drive(t, s.intent(third, "changed", driver.Change{TimeLimit: time.Hour}))
	third = s.wait(t, id, "its third run ends", ended)
	s.register(t, be, other("fourth"))
	fourth := s.wait(t, id, "it runs a fourth time", func(j driver.Job) bool { return j.Submitted.After(third.Submitted) && j.State.Ended() })
	if fourth.State != driver.Succeeded || len(fourth.Attempts) != 1 || !fourth.Change.Empty() || fourth.Attempts[0].Intent != "" {
		t.Errorf("the fourth run is %s after the attempts %+v under %+v", fourth.State, fourth.Attempts, fourth.Change)
	}
	if again := s.get(t, id); len(again.Attempts) != 1 || again.Submitted != fourth.Submitted {
		t.Errorf("asked again: %+v", again)
	}
}
