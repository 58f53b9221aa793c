package command_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/tuning"
)

// The stanza of the design, as #TUNE lines and as a block.
const (
	lines = `#!/bin/sh
#SBATCH --job-name=train
#SBATCH --cpus-per-task=4
#SBATCH --mem=4G
#TUNE mode=apply objective=energy max_slowdown=1.10
#TUNE knob cores values=1,2,4
#TUNE knob threads env=OMP_NUM_THREADS follows=cores
#TUNE knob batch_size env=BATCH_SIZE values=32,64,128,256 default=32
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'
#TUNE checkpoint signal=USR1 grace=60s exit=85
#TUNE budget energy=2MJ time=4h restarts=2 probes=4
exec ./train
`
	block = `job "train" {
  type = "batch"
  group "g" {
    scaling {
      enabled = false
      min     = 1
      max     = 1
      policy {
        tuning {
          mode         = "apply"
          objective    = "energy"
          max_slowdown = 1.10
          knob "cores" { values = [1, 2, 4] }
          knob "threads" {
            env     = "OMP_NUM_THREADS"
            follows = "cores"
          }
          knob "batch_size" {
            env     = "BATCH_SIZE"
            values  = [32, 64, 128, 256]
            default = 32
          }
          progress { pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+)" }
          checkpoint {
            signal = "SIGUSR1"
            grace  = "60s"
            exit   = 85
          }
          budget {
            energy   = "2MJ"
            time     = "4h"
            restarts = 2
            probes   = 4
          }
        }
      }
    }
    task "t" {
      driver = "raw_exec"
      config { command = "./train" }
      resources {
        cores  = 4
        memory = 4096
      }
    }
  }
}
`
)

// verdict is what validate --json says about one file.
type verdict struct {
	File   string         `json:"file"`
	Valid  bool           `json:"valid"`
	Policy *tuning.Policy `json:"policy"`
	Note   string         `json:"note"`
	Errors []struct {
		File   string `json:"file"`
		Line   int    `json:"line"`
		Column int    `json:"column"`
		Found  string `json:"found"`
		Want   string `json:"want"`
	} `json:"errors"`
}

func TestBothSpellingsAreOnePolicy(t *testing.T) {
	t.Parallel()
	var got []verdict
	decoded(t, &got, "validate", write(t, "train.sbatch", lines), write(t, "train.nomad.hcl", block))
	if len(got) != 2 || !got[0].Valid || !got[1].Valid || got[0].Policy == nil || got[0].Policy.Mode != tuning.Apply {
		t.Fatalf("verdicts %+v", got)
	}
	if diff := cmp.Diff(got[0].Policy, got[1].Policy); diff != "" {
		t.Errorf("the policies of both spellings (-sbatch +nomad):\n%s", diff)
	}
}

func TestValidatePrintsThePolicyDefaultsIncluded(t *testing.T) {
	t.Parallel()
	text := ok(t, "validate", write(t, "train.sbatch", lines))
	for _, want := range []string{"train.sbatch: valid", "mode", "energy", "OMP_NUM_THREADS", "warmup", "SIGUSR1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestAFileWithoutAStanzaIsValid(t *testing.T) {
	t.Parallel()
	path := jobFile(t, "plain", 1, 1)
	if text := ok(t, "validate", path); !strings.Contains(text, "no tuning stanza") {
		t.Errorf("output %q", text)
	}
	var got []verdict
	if decoded(t, &got, "validate", path); len(got) != 1 || !got[0].Valid || got[0].Policy != nil || got[0].Note == "" {
		t.Errorf("verdict %+v", got)
	}
}

func TestValidateShowsEveryErrorOfEveryFile(t *testing.T) {
	t.Parallel()
	bad := write(t, "bad.sbatch", "#!/bin/sh\n#TUNE mod=apply\n#TUNE objective=speed\n#TUNE knob cores values=1,x\ntrue\n")
	good := write(t, "good.sbatch", lines)
	worse := write(t, "worse.nomad.hcl", "job \"x\" {\n  tuning { mode = 5 }\n")
	absent := bad + ".absent"

	r := pitchpipe(t, "validate", bad, good, worse, absent)
	if r.code != command.ExitInvalid || !strings.Contains(r.out, good+": valid") {
		t.Errorf("exit %d, output %q", r.code, r.out)
	}
	for _, want := range []string{"bad.sbatch:2:7:", `"mode"`, "bad.sbatch:3:", "bad.sbatch:4:", "worse.nomad.hcl:", "bad.sbatch.absent"} {
		if !strings.Contains(r.errors, want) {
			t.Errorf("%q is missing in\n%s", want, r.errors)
		}
	}

	r = pitchpipe(t, "validate", "--json", bad, good, worse, absent)
	var got []verdict
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || len(got) != 4 || r.code != command.ExitInvalid || r.errors != "" {
		t.Fatalf("exit %d, %v, output %s, errors %q", r.code, err, r.out, r.errors)
	}
	for i, valid := range []bool{false, true, false, false} {
		if got[i].Valid != valid || valid != (len(got[i].Errors) == 0) || valid != (got[i].Policy != nil) {
			t.Errorf("verdict %d: %+v", i, got[i])
		}
	}
	if e := got[0].Errors; len(e) < 3 || e[0].Line != 2 || e[0].Column != 7 || e[0].File != bad || e[0].Found == "" || e[0].Want == "" {
		t.Errorf("errors of the first file: %+v", e)
	}
}

func TestValidateHeedsWhatTheEnvironmentSaysToSbatch(t *testing.T) {
	t.Parallel()
	file, site := write(t, "job.sh", lines), write(t, "site.yaml", "partition:\n  main: {max_mode: apply}\n")
	for environ, want := range map[string]string{"": "is not known here", "SBATCH_PARTITION=main": "job.sh: valid; act now, while the job runs: cores"} {
		var out bytes.Buffer
		command.Run(t.Context(), command.World{
			Args: []string{"validate", "--driver", "slurm", "--site", site, file}, Environ: []string{"PITCHPIPE_SOCKET=/nonexistent/controller.sock", environ}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out,
		})
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q: %s; want %q", environ, out.String(), want)
		}
	}
}
