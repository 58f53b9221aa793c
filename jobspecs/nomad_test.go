package jobspecs_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/jobfile/once"
)

// nomadOnly are the job files that the embedded scheduler does not run.
func nomadOnly() []string {
	return []string{"nomad/controller.nomad.hcl", "nomad/digits-batch.nomad.hcl", "nomad/exporter.nomad.hcl", "nomad/program-go.nomad.hcl"}
}

func nomadFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("nomad/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 7 || !slices.Equal(nomadOnly(), intersection(all, nomadOnly())) {
		t.Fatalf("job files %v", all)
	}
	return all
}

func intersection(a, b []string) []string {
	var out []string
	for _, x := range a {
		if slices.Contains(b, x) {
			out = append(out, x)
		}
	}
	return out
}

func TestEveryJobFileIsCarriedToNomad(t *testing.T) {
	t.Parallel()
	for _, file := range nomadFiles(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			job, err := detect.For("nomad")(file, src, nil)
			if err != nil {
				t.Fatal(err)
			}
			policy, err := stanza.Policy(job)
			service := file == "nomad/controller.nomad.hcl" || file == "nomad/exporter.nomad.hcl"
			switch {
			case service && !errors.Is(err, stanza.ErrNone):
				t.Fatalf("a service has a stanza (%v)", err)
			case !service && err != nil:
				t.Fatal(err)
			case file == "nomad/digits-batch.nomad.hcl":
				if policy.Mode != tuning.Recommend || policy.Checkpoint != nil {
					t.Errorf("what is dispatched is only observed, and the stanza says mode %s, checkpoint %+v", policy.Mode, policy.Checkpoint)
				}
			case !service && job.Env[once.Variable] == "":
				t.Errorf("no %s: a finished run leaves its mark on its node alone", once.Variable)
			}
			source, _ := nomadhcl.ForAgent(file, src)
			if bytes.Equal(source, src) != service {
				t.Error("a stanza is cut out of a job file that is tuned, and nothing of others")
			}
			valid(t, file, source)
		})
	}
}

// valid asks Nomad, where there is one.
func valid(t *testing.T, file string, src []byte) {
	t.Helper()
	nomad, err := exec.LookPath("nomad")
	if err != nil {
		t.Logf("nomad is not asked: %v", err)
		return
	}
	path := filepath.Join(t.TempDir(), filepath.Base(file))
	if err := os.WriteFile(path, src, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), nomad, "job", "validate", path)
	cmd.Env = append(os.Environ(), "NOMAD_ADDR=http://127.0.0.1:1") // the syntax is judged without an agent
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "validation successful") {
		t.Errorf("%v\n%s\n%s", err, out, src)
	}
}
