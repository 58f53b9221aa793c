package nomad_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"
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

// The exporter is one of the files too: as a system job it answers on each node.
func TestTheExporterRunsAsASystemJob(t *testing.T) {
	s := newStage(t)
	if os.Geteuid() != 0 {
		t.Skip("it is root's to run")
	}
	src, err := os.ReadFile(filepath.Join(s.dir, "jobspecs", "nomad", "exporter.nomad.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	at := s.path("as-job")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	vars := fmt.Sprintf("program = %q\ndirectory = %q\nstate = %q\n", s.path("pitchpipe-exporter"), at, filepath.Join(at, "state"))
	job, err := s.nomad.Jobs().ParseHCLOpts(&nomadapi.JobsParseRequest{JobHCL: string(src), Variables: vars, Canonicalize: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.nomad.Jobs().Register(job, nil); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, _, err := s.nomad.Jobs().Deregister(*job.ID, true, nil); err != nil {
			t.Error(err)
		}
	}()
	s.await("its socket", func() error {
		found, err := filepath.Glob(filepath.Join(at, "*.sock"))
		if err == nil && len(found) == 0 {
			err = fmt.Errorf("there is none: %+v", s.allocations(*job.ID))
		}
		return err
	})
}
