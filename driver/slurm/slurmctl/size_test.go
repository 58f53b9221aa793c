package slurmctl_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

func TestASizeIsReadUnderItsNamesAndThoseOfOldJournals(t *testing.T) {
	t.Parallel()
	want := slurmctl.Size{Cores: 2, Memory: slurmctl.Memory{Bytes: 5, PerCPU: true}, TimeLimit: time.Second}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{string(text), `{"cores":2,"memory_bytes":5,"memory_per_cpu":true,"time_limit":1000000000}`} {
		var got slurmctl.Size
		if err := json.Unmarshal([]byte(s), &got); err != nil || got != want {
			t.Errorf("%s is %v (%v), want %v", s, got, err, want)
		}
	}
	if want := `{"cores":2,"memory":{"bytes":5,"per_cpu":true},"time_limit":1000000000}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
}

// answers are what commands print.
type answers map[string]string

func (a answers) Run(_ context.Context, c command.Call) (command.Output, error) {
	return command.Output{Stdout: []byte(a[c.String()])}, nil
}

func TestMemoryByCPUOfWhichAJobGetsMoreThanItsCoresIsNotChanged(t *testing.T) {
	t.Parallel()
	const two = "4|2\n"
	own := slurmctl.Size{Cores: 4, Memory: slurmctl.Memory{Bytes: 400 << 20, PerCPU: true}}
	odd := own
	odd.Cores = 3
	for _, c := range []struct {
		name, nodes, how string
		job              parse.Job
		own, after       slurmctl.Size
		want             error
	}{
		{"whole cores", two, "CR_Core_Memory", parse.Job{}, own, own.With(2), nil},
		{"half a core", two, "CR_Core_Memory", parse.Job{}, odd, odd.With(2), driver.ErrUnsupported},
		{"half a core, and another amount", two, "CR_Core_Memory", parse.Job{}, odd, slurmctl.Size{Cores: 3, Memory: slurmctl.Memory{Bytes: 1 << 30}}, driver.ErrUnsupported},
		{"its owner's size again", two, "CR_Core_Memory", parse.Job{}, odd, odd, nil},
		{"memory of a node", two, "CR_Core_Memory", parse.Job{}, odd.With(1), slurmctl.Size{Cores: 2}, nil},
		{"cores of one thread", "8|1\n", "CR_Core_Memory", parse.Job{}, odd, odd.With(2), nil},
		{"single CPUs", two, "CR_CPU_Memory", parse.Job{}, odd, odd.With(2), nil},
		{"one thread of each core", two, "CR_Core_Memory", parse.Job{FewThreads: true}, own, own.With(2), driver.ErrUnsupported},
		{"more, as is seen", "8|1\n", "CR_Core_Memory", parse.Job{State: "RUNNING", CPUs: 6, CPUsPerTask: 4}, own, own.With(2), driver.ErrUnsupported},
	} {
		run := answers{"scontrol show config": "SelectTypeParameters = " + c.how + "\n", "sinfo -h -a -e -o %Y|%Z": c.nodes}
		if err := slurmctl.ByCPU(t.Context(), run, c.job, c.own, c.after); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}
