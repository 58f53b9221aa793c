package stanza_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver/jobfile"
)

// The example of the documentation in its three spellings, cut to what all three
// can say (a batch script has no arguments to change).
const (
	exampleHCL = `tuning {
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
  knob "memory" {
    min = "256MiB"
    max = "4GiB"
  }
  progress { pattern = "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)" }
  quality {
    direction = "max"
    max_loss  = 0.01
    measures  = ["quality", "time"]
  }
  profile {
    warmup_epochs = 1
    epochs        = 2
  }
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
    returns  = 6
  }
  search {
    method = "asha+gp"
    trials = 64
    seed   = 7
  }
}
`
	exampleLines = `#!/bin/sh
#TUNE mode=apply objective=energy max_slowdown=1.10
#TUNE knob cores values=1,2,4
#TUNE knob threads env=OMP_NUM_THREADS follows=cores
#TUNE knob batch_size env=BATCH_SIZE values=32,64,128,256 default=32
#TUNE knob memory min=256MiB max=4GiB
#TUNE progress pattern='epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)'
#TUNE quality direction=max max_loss=0.01 measures=quality,time
#TUNE profile warmup_epochs=1 epochs=2
#TUNE checkpoint signal=USR1 grace=60s exit=85
#TUNE budget energy=2MJ time=4h restarts=2 probes=4 returns=6
#TUNE search method=asha+gp trials=64 seed=7
`
	exampleJSON = `{"mode": "apply", "objective": "energy", "max_slowdown": 1.10,
  "knob": {
    "cores": {"values": [1, 2, 4]},
    "threads": {"env": "OMP_NUM_THREADS", "follows": "cores"},
    "batch_size": {"env": "BATCH_SIZE", "values": [32, 64, 128, 256], "default": 32},
    "memory": {"min": "256MiB", "max": "4GiB"}
  },
  "progress": {"pattern": "epoch (?P<epoch>\\d+)/(?P<total>\\d+) loss (?P<loss>\\S+) acc (?P<quality>\\S+)"},
  "quality": {"direction": "max", "max_loss": 0.01, "measures": ["quality", "time"]},
  "profile": {"warmup_epochs": 1, "epochs": 2},
  "checkpoint": {"signal": "SIGUSR1", "grace": "60s", "exit": 85},
  "budget": {"energy": "2MJ", "time": "4h", "restarts": 2, "probes": 4, "returns": 6},
  "search": {"method": "asha+gp", "trials": 64, "seed": 7}}
`
)

func example() tuning.Policy {
	n := tuning.Number
	return tuning.Policy{
		Mode: tuning.Apply, Objective: tuning.Energy, Weight: tuning.DefaultWeight, MaxSlowdown: 1.1,
		Knobs: []tuning.Knob{
			{Name: "cores", Values: []tuning.Value{n(1), n(2), n(4)}},
			{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"},
			{Name: "batch_size", Env: "BATCH_SIZE", Values: []tuning.Value{n(32), n(64), n(128), n(256)}, Default: n(32)},
			{Name: "memory", Min: n(256 << 20), Max: n(4 << 30), Scale: tuning.Linear},
		},
		Progress:   tuning.Progress{Pattern: `epoch (?P<epoch>\d+)/(?P<total>\d+) loss (?P<loss>\S+) acc (?P<quality>\S+)`},
		Quality:    &tuning.Quality{Direction: "max", MaxLoss: 0.01, Measures: []string{"quality", "time"}},
		Profile:    tuning.ProfileSpec{WarmupEpochs: 1, Epochs: 2},
		Checkpoint: &tuning.Checkpoint{Signal: "SIGUSR1", Grace: time.Minute, Exit: 85},
		Budget:     tuning.Budget{Energy: 2e6, Time: 4 * time.Hour, Restarts: 2, Probes: 4, Returns: 6},
		Search:     &tuning.Search{Method: tuning.ASHAGP, Trials: 64, Parallel: 4, Eta: 3, Seed: 7, System: tuning.Pipelined},
	}
}

func TestTheSpellingsOfTheExampleAreOnePolicy(t *testing.T) {
	t.Parallel()
	wrapped := strings.ReplaceAll(strings.ReplaceAll(exampleJSON, "{", "[{"), "}", "}]")
	tests := []struct{ name, file, src string }{
		{"a block of the job", "job.nomad.hcl", wrap(exampleHCL)},
		{"a block of the group", "job.nomad.hcl", inGroup(exampleHCL)},
		{"the scaling policy", "job.nomad.hcl", inGroup("scaling {\nenabled = false\nmin = 1\nmax = 1\npolicy {\n" + exampleHCL + "}\n}\n")},
		{"jsonencode in meta", "job.nomad.hcl", wrap("meta = { tuning = jsonencode(" + exampleJSON + ") }\n")},
		{"text in meta", "job.nomad.hcl", wrap("meta {\n tuning = <<EOF\n" + exampleJSON + "EOF\n}\n")},
		{"lines of a script", "job.sh", exampleLines},
		{"JSON", "stanza.json", exampleJSON},
		{"JSON as Nomad wraps it", "stanza.json", `[{"tuning": ` + wrapped + "}]"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			job, err := read(tt.file, []byte(tt.src))
			if err != nil {
				t.Fatal(err)
			}
			p, err := stanza.Policy(job)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(example(), p); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheModeOfASearchFollowsWhatItDoesWithSystemKnobs(t *testing.T) {
	t.Parallel()
	const rest = "\n#TUNE knob lr env=LR values=1,2\n#TUNE progress pattern='(?P<epoch>.)(?P<loss>.)'\n"
	for search, want := range map[string]tuning.Mode{
		"#TUNE search epochs=3":                                                 tuning.Apply,
		"#TUNE search epochs=3 system=pipelined":                                tuning.Apply,
		"#TUNE search epochs=3 system=searched":                                 tuning.Observe,
		"#TUNE search epochs=3 system=fixed":                                    tuning.Observe,
		"#TUNE mode=recommend\n#TUNE search epochs=3 system=fixed":              tuning.Recommend,
		"#TUNE search epochs=3 system=pipelined\n#TUNE mode=observe":            tuning.Observe,
		"#TUNE mode=apply\n#TUNE search system=searched\n#TUNE search epochs=3": tuning.Apply,
	} {
		job, err := read("job.sh", []byte("#!/bin/sh\n"+search+rest))
		if err != nil {
			t.Fatal(err)
		}
		p, err := stanza.Policy(job)
		if err != nil || p.Mode != want || job.Applies() != (want == tuning.Apply) {
			t.Errorf("%s: mode %s, which the job file says is apply: %t, want %s (%v)", search, p.Mode, job.Applies(), want, err)
		}
	}
}

func inGroup(text string) string {
	return strings.Replace(wrap(""), "group \"g\" {\n", "group \"g\" {\n"+text, 1)
}

func TestNoStanza(t *testing.T) {
	t.Parallel()
	for name, job := range map[string]*jobfile.Job{"no job": nil, "a job without a stanza": {}} {
		if _, err := stanza.Policy(job); !errors.Is(err, stanza.ErrNone) {
			t.Errorf("%s: error %v, want ErrNone", name, err)
		}
	}
}

func TestOwn(t *testing.T) {
	t.Parallel()
	n := tuning.Number
	tests := []struct {
		name string
		job  *jobfile.Job
		p    tuning.Policy
		want tuning.Settings
	}{
		{"nothing is known without a job", nil, tuning.Policy{}, tuning.Settings{}},
		{
			"cores and memory are what the job asks for, knobs or not",
			&jobfile.Job{Cores: 2, MemoryBytes: 1 << 30},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "cores", Env: "N"}}},
			tuning.Settings{"cores": n(2), "memory": n(1 << 30)},
		},
		{
			"no memory limit is no setting",
			&jobfile.Job{Cores: 1},
			tuning.Policy{},
			tuning.Settings{"cores": n(1)},
		},
		{
			"the environment overrides the default",
			&jobfile.Job{Cores: 1, Env: map[string]string{"B": "64"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "b", Env: "B", Default: n(32)}}},
			tuning.Settings{"cores": n(1), "b": n(64)},
		},
		{
			"the last flag of the command line counts, in both forms",
			&jobfile.Job{Cores: 1, Argv: []string{"--lr=9", "--lr", "0.1", "--lr=0.2", "--mom", "0.9", "--end"}},
			tuning.Policy{Knobs: []tuning.Knob{
				{Name: "lr", Arg: "--lr"}, {Name: "mom", Arg: "--mom"}, {Name: "end", Arg: "--end", Default: n(3)},
			}},
			tuning.Settings{"cores": n(1), "lr": n(0.2), "mom": n(0.9), "end": n(3)},
		},
		{
			"what only the node knows is not shown",
			&jobfile.Job{Cores: 1, Env: map[string]string{"B": "${NOMAD_META_b}"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "b", Env: "B", Default: n(32)}}},
			tuning.Settings{"cores": n(1), "b": n(32)},
		},
		{
			"a value that the knob cannot have is not shown",
			&jobfile.Job{Cores: 4, Env: map[string]string{"OMP_NUM_THREADS": "many"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4), "threads": n(4)},
		},
		{
			"threads that only the node can tell follow the cores",
			&jobfile.Job{Cores: 4, Env: map[string]string{"OMP_NUM_THREADS": "${attr.cpu.numcores}"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4), "threads": n(4)},
		},
		{
			"threads that a script takes from its scheduler follow the cores",
			&jobfile.Job{Cores: 4, Script: []byte("#!/bin/sh\nexport OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK\n")},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4), "threads": n(4)},
		},
		{
			"threads that a command sets follow the cores",
			&jobfile.Job{Cores: 4, Argv: []string{"sh", "-c", "OMP_NUM_THREADS=$(nproc) ./train"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4), "threads": n(4)},
		},
		{
			"threads that the file leaves to its program are not known",
			&jobfile.Job{Cores: 4, Script: []byte("#!/bin/sh\n#TUNE knob threads env=OMP_NUM_THREADS follows=cores\n./train\n")},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4)},
		},
		{
			"a following knob is as shown",
			&jobfile.Job{Cores: 4, Env: map[string]string{"OMP_NUM_THREADS": "1"}},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "threads", Env: "OMP_NUM_THREADS", Follows: "cores"}}},
			tuning.Settings{"cores": n(4), "threads": n(1)},
		},
		{
			"a following knob may stand before the one it follows",
			&jobfile.Job{Cores: 1},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "w", Env: "W", Follows: "b"}, {Name: "b", Live: true, Default: tuning.Word("x")}}},
			tuning.Settings{"cores": n(1), "w": tuning.Word("x"), "b": tuning.Word("x")},
		},
		{
			"a knob that follows what is not known is not known",
			&jobfile.Job{Cores: 1},
			tuning.Policy{Knobs: []tuning.Knob{{Name: "gpus"}, {Name: "threads", Follows: "gpus"}}},
			tuning.Settings{"cores": n(1)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, stanza.Own(tt.job, tt.p)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
