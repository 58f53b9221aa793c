package command

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	nomadapi "github.com/hashicorp/nomad/api"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/tuning"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/nomadagent"
)

// threaded is a job whose epochs take as long as its threads let them.
const threaded = `job "train" {
  type = "batch"
  group "g" {
    tuning {
      mode      = "apply"
      objective = "time"
      knob "threads" {
        env    = "OMP_NUM_THREADS"
        values = [1, 2, 4]
      }
      progress { pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+)" }
      profile { epochs = 2 }
    }
    restart { attempts = 0 }
    reschedule { attempts = 0 }
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/sh"
        args    = ["-c", "n=0; while [ $n -lt $EPOCHS ]; do case $OMP_NUM_THREADS in 1) sleep 1;; 2) sleep 0.9;; 4) sleep 0.4;; esac; n=$((n+1)); echo epoch $n/$EPOCHS; done"]
      }
      env {
        OMP_NUM_THREADS = 1
        EPOCHS          = 9
      }
      resources {
        cpu    = 20
        memory = 20
      }
    }
  }
}
`

func prober(t *testing.T, agent *nomadagent.Agent, said *bytes.Buffer) *app {
	t.Helper()
	return &app{
		World: World{Environ: []string{"NOMAD_ADDR=" + agent.Addr, "HOME=" + t.TempDir()}, Stderr: said},
		cfg:   config.Config{Exporter: config.Exporter{Socket: filepath.Join(t.TempDir(), "no.sock")}},
	}
}

// registered are the jobs of Nomad by id.
func registered(t *testing.T, client *nomadapi.Client) map[string]*nomadapi.Job {
	t.Helper()
	stubs, _, err := client.Jobs().List(nil)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*nomadapi.Job{}
	for _, s := range stubs {
		if out[s.ID], _, err = client.Jobs().Info(s.ID, nil); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func TestAJobIsProbedByShortJobsAndRegisteredOnce(t *testing.T) {
	t.Parallel()
	nomadagent.Both(t, nomadagent.Options{}, func(t *testing.T, agent *nomadagent.Agent) {
		var said bytes.Buffer
		a := prober(t, agent, &said)
		absent := api.NewClient(filepath.Join(t.TempDir(), "no.sock"))
		defer absent.Close()
		nomad := agent.Client(t)
		s := api.Submission{Filename: "train.nomad.hcl", Source: []byte(threaded)}
		with := probing{4, map[string]string{"EPOCHS": "4"}}

		// Interrupted while the first runs: that is stopped, and nothing is registered.
		ctx, interrupt := context.WithCancel(t.Context())
		defer interrupt()
		go func() {
			for ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
				if list, _, err := nomad.Allocations().List(nil); err == nil && slices.ContainsFunc(list, func(a *nomadapi.AllocationListStub) bool { return a.ClientStatus == "running" }) {
					interrupt()
				}
			}
		}()
		if _, _, err := a.probeAndSubmit(ctx, absent, s, with); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nothing was submitted") {
			t.Fatalf("interrupted: %v\n%s", err, said.String())
		}
		for id, j := range registered(t, nomad) {
			if id == "train" || !*j.Stop {
				t.Errorf("%s: stopped %v, want short jobs alone, and none to run on", id, *j.Stop)
			}
		}

		// The same again goes on, and registers the job once.
		job, _, err := a.probeAndSubmit(t.Context(), absent, s, with)
		if err != nil || job.ID != "train" {
			t.Fatalf("%+v, %v\n%s", job, err, said.String())
		}
		short, tried := 0, map[string]bool{}
		for id, j := range registered(t, nomad) {
			env := j.TaskGroups[0].Tasks[0].Env
			switch {
			case id == "train":
				if env["OMP_NUM_THREADS"] != "4" || env["EPOCHS"] != "9" || *j.Version != 0 || j.Meta["pitchpipe_off"] != "" {
					t.Errorf("the job has %v in version %d with meta %v", env, *j.Version, j.Meta)
				}
			case !strings.HasPrefix(id, "train-") || env["EPOCHS"] != "4" || j.Meta["pitchpipe_off"] != "true":
				t.Errorf("%s is no short job that is left alone: %v, %v", id, env, j.Meta)
			default:
				short++
				tried[env["OMP_NUM_THREADS"]] = true
			}
		}
		// One that was stopped, or whose output was read too late on a busy machine, is run again.
		again := strings.Count(said.String(), "is run again")
		if len(tried) != 3 || short > len(tried)+again {
			t.Errorf("%d short jobs with %v threads, want three settings, each once but for %d that were run again", short, slices.Sorted(maps.Keys(tried)), again)
		}
		sub, _, err := nomad.Jobs().Submission("train", 0, nil)
		if err != nil || !strings.HasSuffix(sub.Source, threaded) || !strings.Contains(sub.Source, `OMP_NUM_THREADS = "4"`) {
			t.Errorf("submission %+v (%v), want the user's own with what was chosen", sub, err)
		}
		for _, want := range []string{"SHORT JOB", "its own settings", "chosen cores=1 memory=20MiB threads=4", "by measurement"} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%q was not said:\n%s", want, said.String())
			}
		}
		if left, err := filepath.Glob(filepath.Join(a.env("HOME"), ".local/state/pitchpipe/probes/*")); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v (%v)", left, err)
		}
	})
}

func TestWhatCannotBeProbedIsInvalid(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file, source string
		short        map[string]string
		want         string
	}{
		"an sbatch script":             {"train.sh", "#!/bin/sh\n#TUNE mode=apply\n", map[string]string{"EPOCHS": "2"}, "sbatch script"},
		"no stanza":                    {"train.nomad.hcl", strings.Replace(threaded, "tuning {", "meta {", 1), map[string]string{"EPOCHS": "2"}, ""},
		"what is tried makes it short": {"train.nomad.hcl", threaded, map[string]string{"OMP_NUM_THREADS": "2"}, "it is the knob threads"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := &app{World: World{Environ: []string{"NOMAD_ADDR=http://127.0.0.1:1", "HOME=" + t.TempDir()}, Stderr: &bytes.Buffer{}}}
			_, _, err := a.probe(t.Context(), api.Submission{Filename: tt.file, Source: []byte(tt.source)}, probing{2, tt.short})
			if exitStatus(err) != ExitInvalid || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestJoulesAreThoseOfTheEpochsThatWereRead(t *testing.T) {
	t.Parallel()
	at := func(s float64) time.Time { return time.Unix(1000, 0).Add(time.Duration(s * float64(time.Second))) }
	w := exporterapi.Window{Job: exporterapi.Job{Started: at(0)}, Source: "rapl"}
	for i := range 20 {
		w.Samples = append(w.Samples, exporterapi.Sample{Seq: uint64(i + 1), Time: at(float64(i)), Values: map[string]float64{exporterapi.ColJoules: 10 * float64(i)}})
	}
	// Somebody else's mark does not count.
	w.Samples = append(w.Samples, exporterapi.Sample{Seq: 99, Time: at(7), Mark: &exporterapi.Report{Epoch: 2}})
	epochs := []tuning.Epoch{{Number: 2, Attempt: 1, Start: at(3), End: at(8)}, {Number: 3, Attempt: 1, Start: at(8), End: at(14)}, {Number: 4, Attempt: 1, Start: at(14), End: at(40)}}
	got := withJoules(w, epochs)
	for i, want := range []float64{50, 60} {
		if j := got[i].Joules; j == nil || math.Abs(float64(*j)-want) > 1e-6 || got[i].Source != "rapl" {
			t.Errorf("epoch %d: %+v, want %g joules", i+2, got[i], want)
		}
	}
	if got[2].Joules != nil {
		t.Errorf("an epoch that no exporter measured to its end has %v joules", *got[2].Joules)
	}
}
