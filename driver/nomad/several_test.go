package nomad_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// A job of several is only observed, and its state is that of all of it.
func TestAJobOfSeveralIsDoneWhenAllOfItIs(t *testing.T) {
	t.Parallel()
	stories(t, map[string]func(*testing.T, *story){
		"the last index of two is done first":              lastFirst,
		"a leader is changed, and its end ends its helper": leads,
	})
}

func lastFirst(t *testing.T, s *story) {
	script := fmt.Sprintf("[ $NOMAD_ALLOC_INDEX = 1 ] && exit 0; while [ ! -e %s/go ]; do sleep 0.05; done", s.dir)
	id := s.register(t, mover(1), func(file string) string {
		file = strings.Replace(file, "      max     = 1", "      max     = 2", 1)
		file = strings.Replace(file, `group "g" {`, "group \"g\" {\n    count = 2", 1)
		file = strings.Replace(file, `command = "`, "command = \"/bin/sh\"\n        # ", 1)
		return strings.Replace(file, "args    = [", fmt.Sprintf("args    = [\"-c\", %q]\n        # ", script), 1)
	})
	eventually(t, "one of it is done, the other runs", func() bool {
		is := map[string]int{}
		for _, a := range s.allocs(t, id) {
			is[a.ClientStatus]++
		}
		return is[api.AllocClientStatusComplete] == 1 && is[api.AllocClientStatusRunning] == 1
	})
	if got := s.get(t, id); got.State != driver.Running {
		t.Errorf("%s (%s) when one of it is done, want %s", got.State, got.Detail, driver.Running)
	}
	if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.wait(t, id, "it has ended", ended); got.State != driver.Succeeded || got.ExitCode != 0 {
		t.Errorf("%s (%s) with status %d, want %s", got.State, got.Detail, got.ExitCode, driver.Succeeded)
	}
}

func leads(t *testing.T, s *story) {
	if !s.agent.Real {
		t.Skip("the server of the tests ends no helpers with their leader: packages spec and view have tests of which task is tuned and how such a job ends")
	}
	id, job := s.runs(t, mover(long), func(file string) string {
		return strings.Replace(file, `task "main" {`, `task "helper" {
      driver = "raw_exec"
      config {
        command = "/bin/sleep"
        args    = ["1000"]
      }
      resources {
        cpu    = 50
        memory = 32
      }
    }
    task "main" {
      leader = true`, 1)
	})
	s.drives(t, s.intent(job, "moved", driver.Change{Env: map[string]string{"A": "1"}}), driver.StepStarted)
	in := s.intent(s.started(t, id), "discards", driver.Change{Env: map[string]string{"A": "2"}})
	in.Discard = true
	s.drives(t, in, driver.StepStarted)
	if got := s.finish(t, id); got.State != driver.Succeeded || got.Attempt != 3 {
		t.Errorf("%s (%s) in attempt %d, want %s in the third", got.State, got.Detail, got.Attempt, driver.Succeeded)
	}
}
