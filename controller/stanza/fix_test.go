package stanza_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
)

const searched = `#!/bin/sh
#SBATCH --cpus-per-task=2
#TUNE mode=apply
#TUNE search trials=9
#TUNE knob lr env=LR min=0.01 max=1 default=0.1
#TUNE knob optimizer env=OPTIMIZER values=sgd,adam default=sgd
#TUNE knob momentum env=MOMENTUM min=0 max=1 default=0 when=optimizer=sgd
#TUNE knob threads env=THREADS values=1,2,4 default=1
export LR=${LR:-0.1}
: "${MOMENTUM:=0}"
echo "$LR ${OPTIMIZER-none} $MOMENTUM ${THREADS:-1}"
`

func TestAFixedScriptIsATunedJobWithTheValues(t *testing.T) {
	t.Parallel()
	fix := jobfile.Fix{
		Env:   map[string]string{"LR": "0.25", "OPTIMIZER": "sgd", "MOMENTUM": "0.9", "THREADS": "4"},
		Knobs: []string{"lr", "optimizer", "momentum"},
	}
	text, err := detect.Fix("a.sh", []byte(searched), nil, fix)
	if err != nil {
		t.Fatal(err)
	}
	job, err := detect.Parse("a.sh", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := stanza.Policy(job)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	own := stanza.Own(job, policy)
	if diff := cmp.Diff(tuning.Settings{tuning.Cores: tuning.Number(2), tuning.Threads: tuning.Number(4)}, own); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	for name, want := range fix.Env {
		if job.Env[name] != want {
			t.Errorf("the file shows %s=%q, want %q", name, job.Env[name], want)
		}
	}
	for _, tt := range []struct{ name, env, want string }{
		{"as it is", "PATH=/bin", "0.25 sgd 0.9 4"},
		{"after a move to other threads", "THREADS=2", "0.25 sgd 0.9 2"},
		{"where somebody has exported a hyperparameter", "LR=9", "0.25 sgd 0.9 4"},
	} {
		c := exec.CommandContext(t.Context(), "/bin/sh", "-c", string(text))
		c.Env = []string{tt.env}
		if got, err := c.Output(); err != nil || strings.TrimSpace(string(got)) != tt.want {
			t.Errorf("%s the script prints %q (%v), want %q", tt.name, got, err, tt.want)
		}
	}
}

func TestAFixedNomadJobHasTheFlagsAsItsOwnSettings(t *testing.T) {
	t.Parallel()
	const src = `job "j" {
  type = "batch"
  group "g" {
    tuning {
      search {}
      knob "lr" {
        arg = "--lr"
        min = 0.01
        max = 1
      }
    }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/train"
        args    = ["--lr", "0.1"]
      }
    }
  }
}
`
	for _, tt := range []struct {
		name  string
		knobs []string
		want  tuning.Settings
	}{
		{"a knob that stays", nil, tuning.Settings{tuning.Cores: tuning.Number(1), "lr": tuning.Number(0.25)}},
		{"a knob that leaves", []string{"lr"}, tuning.Settings{tuning.Cores: tuning.Number(1)}},
	} {
		text, err := detect.Fix("a.nomad.hcl", []byte(src), nil, jobfile.Fix{Args: map[string]string{"--lr": "0.25"}, Knobs: tt.knobs})
		if err != nil {
			t.Fatal(err)
		}
		job, err := detect.Parse("a.nomad.hcl", text, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		policy, err := stanza.Policy(job)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, stanza.Own(job, policy)); diff != "" || strings.Join(job.Argv, " ") != "/bin/train --lr 0.25" {
			t.Errorf("%s: %q (-want +got):\n%s", tt.name, job.Argv, diff)
		}
	}
}
