package nomad_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// The Go program is run shortly first, submitted once, and then tuned in place: one
// version, one allocation, each epoch done.
func TestTheGoProgramIsProbedAndTunedInPlace(t *testing.T) {
	if !*all {
		t.Skip("it takes minutes; make e2e-nomad runs it")
	}
	s := newStage(t)
	const epochs = 24
	folder := t.TempDir()
	file := s.path("jobspecs", "nomad", "program-go.nomad.hcl")
	id := s.run("run", "--probe", "1", "--probe-env", "EPOCHS=5", "--var", "workload="+s.path("workload"), "--var", "folder="+folder, "--var", fmt.Sprintf("epochs=%d", epochs), file)
	if id != "program-go" {
		t.Fatalf("job %q", id)
	}
	j := s.through(id, time.Time{})
	job, _, err := s.nomad.Jobs().Info(id, nil)
	if err != nil {
		t.Fatal(err)
	}
	list := s.allocations(id)
	if j.State != "succeeded" || j.Epoch != epochs || *job.Version != 0 || len(list) != 1 {
		t.Errorf("%s, epoch %d, version %d, %d allocations; want each change in the one allocation of the one version", j.State, j.Epoch, *job.Version, len(list))
	}
	if j.Attempt != 1+j.Restarts+j.Probes {
		t.Errorf("%d attempts, %d restarts, %d probes", j.Attempt, j.Restarts, j.Probes)
	}
	stubs, _, err := s.nomad.Jobs().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	short := 0
	for _, stub := range stubs {
		if strings.HasPrefix(stub.ID, "program-go-") {
			short++
		}
	}
	if short != 2 {
		t.Errorf("%d short jobs, want two: its own settings and one other", short)
	}
	if v, _, err := s.nomad.Variables().Peek(strings.Join([]string{"nomad/jobs", id, "work", "program"}, "/"), nil); err != nil || v != nil {
		t.Errorf("its variable is still there: %+v (%v)", v, err)
	}
	fmt.Fprintf(&report, "On %s: program-go with %d short jobs before it, %d attempts in %d allocation(s).\n", s.agent.Name(), short, j.Attempt, len(list))
}
