package nomad_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

func TestAnAttemptIsDiscarded(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"2.2 a kill_signal that asks it to save does not keep a discarded attempt until its kill_timeout": discardsAtOnce,
	})
}

// discardsAtOnce: as "pitchpipe run" registers it, the job is asked to save by whatever ends
// it. Here it takes for ever to do so.
func discardsAtOnce(t *testing.T, s *story) {
	defer s.hold(t)()
	id := s.register(t, mover(long), func(file string) string {
		return strings.Replace(file, `kill_timeout = "1s"`, "kill_signal = \"SIGUSR1\"\n      kill_timeout = \"30s\"", 1)
	})
	s.epochs(t, id, 2)
	job := s.wait(t, id, "it runs", running)
	in := s.intent(job, "discard", driver.Change{MemoryBytes: 200 << 20})
	in.Discard = true
	s.drives(t, in, driver.StepStarted)
	list := s.allocs(t, id)
	i := slices.IndexFunc(list, func(a *api.AllocationListStub) bool { return job.Attempts[0].Unit == a.ID+".main" })
	var events []string
	for _, e := range list[i].TaskStates["main"].Events {
		events = append(events, strings.TrimSpace(e.Type+" "+e.Details["signal"]))
	}
	events = slices.Compact(events) // a signal whose answer the end of the task cuts off is repeated
	killing := slices.Index(events, api.TaskKilling)
	if killing < 0 || !slices.Equal(events[killing+1:][:2], []string{api.TaskSignaling + " SIGKILL", api.TaskTerminated + " 9"}) {
		t.Errorf("events %q, want SIGKILL alone once it was being ended", events)
	}
	// A kill that Nomad did not send would be one for memory.
	got := s.wait(t, id, "the second attempt runs", func(j driver.Job) bool { return running(j) && j.Attempt == 2 })
	if got.Attempts[0].ExitCode != 137 || got.Attempts[1].Intent != in.ID || got.Change.MemoryBytes != 200<<20 {
		t.Errorf("attempts %+v, want the first killed and the second with the change", got.Attempts)
	}
	epochs := s.output(t, id)
	eventually(t, "the second attempt works", func() bool { return len(s.output(t, id)) > len(epochs) })
}
