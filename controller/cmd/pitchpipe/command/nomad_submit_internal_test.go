package command

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver/jobfile"
	"pitchpipe/test/nomadagent"
)

const trained = `variable "lr" { default = "1" }
job "train" {
  type = "batch"
  group "g" {
    # ü
    tuning {
      mode = "observe"
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/true"
        args    = [var.lr] # remark
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`

func TestAJobFileIsSubmittedToNomadAsItsUser(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, agent *nomadagent.Agent) {
		var said bytes.Buffer
		a := &app{World: World{Environ: []string{"NOMAD_ADDR=" + agent.Addr}, Stderr: &said}}
		absent := api.NewClient(filepath.Join(t.TempDir(), "no.sock"))
		defer absent.Close()
		nomad := agent.Client(t)
		submit := func(src string, vars map[string]string) (api.Job, error) {
			job, _, err := a.submitWith(t.Context(), absent, api.Submission{Filename: "train.nomad.hcl", Source: []byte(src), Variables: vars}, nil)
			return job, err
		}

		// What is wrong is named in the user's file, and nothing was registered.
		for _, tt := range []struct{ name, old, new, want string }{
			{"a block that only the agent judges", "    # ü\n", "    /* ü */ restrt {}\n", "train.nomad.hcl:5:14: "},
			{"a key behind the stanza", "        command =", "        command =\n", "train.nomad.hcl:12:18: "},
			{"two stanzas", "  group \"g\" {", "  tuning {}\n  group \"g\" {", "train.nomad.hcl:7:5: a second tuning stanza"},
		} {
			_, err := submit(strings.Replace(trained, tt.old, tt.new, 1), nil)
			if _, ok := errors.AsType[jobfile.Errors](err); !ok || !strings.Contains(err.Error(), tt.want) || exitStatus(err) != ExitInvalid {
				t.Errorf("%s: error %v, want %s", tt.name, err, tt.want)
			}
		}
		if _, err := submit(trained, map[string]string{"rl": "2"}); err == nil || !strings.Contains(err.Error(), `did you mean "lr"?`) {
			t.Errorf("an unknown variable: %v", err)
		}
		if jobs, _, err := nomad.Jobs().List(nil); err != nil || len(jobs) != 0 {
			t.Fatalf("registered: %v, %v", jobs, err)
		}

		job, err := submit(trained, map[string]string{"lr": "2"})
		if err != nil || job.ID != "train" || !strings.Contains(said.String(), "was submitted") {
			t.Fatalf("%+v, %v\n%s", job, err, said.String())
		}
		if strings.Contains(said.String(), "train.nomad.hcl: ") {
			t.Errorf("warned of nothing:\n%s", said.String())
		}
		// The user hears where the completion marker does not reach.
		alone := strings.NewReplacer(`job "train"`, `job "alone"`, `"raw_exec"`, `"exec"`).Replace(trained)
		if _, err := submit(alone, nil); err != nil || !strings.Contains(said.String(), "train.nomad.hcl: a task of the driver exec sees no other allocation: set PITCHPIPE_MARKS") {
			t.Errorf("%v; it was said\n%s", err, said.String())
		}
		there, _, err := nomad.Jobs().Info("train", nil)
		if err != nil {
			t.Fatal(err)
		}
		if s := there.TaskGroups[0].Scaling; s == nil || *s.Enabled || *s.Max != 1 || s.Policy["tuning"] == nil {
			t.Errorf("scaling %+v, want the stanza in its policy", s)
		}
		source, _, err := nomad.Jobs().Submission("train", int(*there.Version), &nomadapi.QueryOptions{}) //nolint:gosec // a small number
		if err != nil || source.Source != trained || source.VariableFlags["lr"] != "2" {
			t.Errorf("submission %+v, %v, want the user's own file", source, err)
		}
	})
}
