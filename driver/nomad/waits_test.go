package nomad_test

import (
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
)

// A job that waits for room is changed before it starts, wherever the controller dies, and one
// that is stopped never starts.
func TestAJobThatWaitsForRoomIsChangedBeforeItStarts(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"a controller dies before it registers the change, and behind it": func(t *testing.T, s *story) {
			large := s.register(t, drivertest.Behaviour{Name: "large", Epochs: long, Epoch: epoch, MemoryBytes: (s.memory(t) - 256) << 20}, nil)
			s.epochs(t, large, 1)
			waits := func(name string) driver.Job {
				b := drivertest.Behaviour{Name: name, Epochs: 2, Epoch: epoch, MemoryBytes: 512 << 20}
				return s.wait(t, s.register(t, b, nil), "it waits for room", func(j driver.Job) bool {
					return j.State == driver.Pending && j.Detail != ""
				})
			}
			stopped := waits("stopped")
			if err := s.d.Stop(t.Context(), stopped.ID); err != nil {
				t.Fatal(err)
			}
			var jobs []driver.Job
			for i, after := range []bool{false, true} {
				job := waits([]string{"before", "behind"}[i])
				in := s.intent(job, "changed-"+job.Name, driver.Change{TimeLimit: time.Hour})
				in.Checkpoint = nil
				s.dieAt(t, in, 0, after)
				got := s.get(t, job.ID)
				if got.State != driver.Pending || got.Attempt != 0 || got.Intent != in.ID || got.Change.TimeLimit != time.Hour {
					t.Errorf("%s in attempt %d with %+v of %q, want it to wait with the change", got.State, got.Attempt, got.Change, got.Intent)
				}
				jobs = append(jobs, got)
			}
			if err := s.d.Stop(t.Context(), large); err != nil {
				t.Fatal(err)
			}
			for _, job := range jobs {
				got := s.wait(t, job.ID, "it ends", ended)
				if got.State != driver.Succeeded || len(got.Attempts) != 1 || got.Attempts[0].Intent != job.Intent || got.Attempts[0].Change.TimeLimit != time.Hour {
					t.Errorf("%s after %+v, want one attempt with the change", got.State, got.Attempts)
				}
			}
			if got := s.get(t, stopped.ID); got.State != driver.Cancelled || got.Attempt != 0 {
				t.Errorf("%s in attempt %d, want it cancelled and never started", got.State, got.Attempt)
			}
		},
	})
}
