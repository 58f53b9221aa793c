package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// counter is work whose whole state is the sum of the epochs done. onEpoch, where
// set, is called inside of each.
type counter struct {
	sum     uint64
	onEpoch func(n int) error
}

func (c *counter) epoch(_ context.Context, n int) (result, error) {
	c.sum += uint64(n)
	if c.onEpoch != nil {
		if err := c.onEpoch(n); err != nil {
			return result{}, err
		}
	}
	return result{loss: float64(c.sum), acc: 0.5}, nil
}
func (c *counter) state() []any { return []any{&c.sum} }

type outcome struct {
	status        int
	err           error
	out, messages string
}

// job runs counters over one checkpoint file. ask is sent inside of epoch askIn,
// or before the start where askIn is 0.
type job struct {
	options options
	epochs  []int // done so far over all runs
	failAt  int   // epoch that fails, 0 = none
}

func newJob(t *testing.T, total int) *job {
	return &job{options: options{
		state:  filepath.Join(t.TempDir(), "job.ckpt"),
		params: params{epochs: total, input: 1, scale: 1, team: newTeam(1)},
	}}
}

func (j *job) run(t *testing.T, askIn int, ask ...request) outcome {
	t.Helper()
	requests := make(chan request, 8)
	send := func() {
		for _, q := range ask {
			requests <- q
		}
	}
	if askIn == 0 {
		send()
	}
	k := kind{name: "counter", start: func(params) (work, error) {
		return &counter{onEpoch: func(n int) error {
			if n == j.failAt {
				return errBroken
			}
			j.epochs = append(j.epochs, n)
			if n == askIn {
				send()
			}
			return nil
		}}, nil
	}}
	var out, messages strings.Builder
	status, err := play(t.Context(), k, j.options, requests, &out, &messages)
	return outcome{status, err, out.String(), messages.String()}
}

func lines(from, to, total int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintf(&b, "epoch %d/%d loss %d acc 0.5000\n", n, total, n*(n+1)/2)
	}
	return b.String()
}

func (j *job) mustHaveNoState(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(j.options.state); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the checkpoint is there (%v), want none", err)
	}
}

func TestARunLeftAloneDoesAllEpochsAndLeavesNoState(t *testing.T) {
	t.Parallel()
	j := newJob(t, 4)
	got := j.run(t, -1)
	if want := lines(1, 4, 4) + "done after 4 epochs\n"; got.status != exitDone || got.err != nil || got.out != want || got.messages != "" {
		t.Errorf("got %+v, want output\n%s", got, want)
	}
	j.mustHaveNoState(t)
}

func TestASavedRunGoesOnWhereItLeftOff(t *testing.T) {
	t.Parallel()
	for request, status := range map[request]int{
		saveAndLeave: exitSaved,
		terminate:    exitTerminated,
	} {
		j := newJob(t, 5)
		if got := j.run(t, 2, request); got.status != status || got.err != nil || got.out != lines(1, 2, 5) {
			t.Errorf("request %v: first run %+v, want status %d", request, got, status)
		}
		if got := j.run(t, 4, request); got.status != status || got.out != lines(3, 4, 5) {
			t.Errorf("request %v: second run %+v, want status %d", request, got, status)
		}
		if got := j.run(t, -1); got.status != exitDone || got.out != lines(5, 5, 5)+"done after 5 epochs\n" {
			t.Errorf("request %v: third run %+v", request, got)
		}
		if fmt.Sprint(j.epochs) != "[1 2 3 4 5]" {
			t.Errorf("request %v: epochs %v, want each once", request, j.epochs)
		}
		j.mustHaveNoState(t)
	}
}

func TestARequestBeforeTheFirstEpochSavesWhatThereIs(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	if got := j.run(t, 0, saveAndLeave); got.status != exitSaved || got.out != "" {
		t.Errorf("got %+v", got)
	}
	if got := j.run(t, -1); got.status != exitDone || got.out != lines(1, 3, 3)+"done after 3 epochs\n" {
		t.Errorf("got %+v", got)
	}
}

func TestARequestInTheLastEpochDoesNotKeepTheRunFromEnding(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	if got := j.run(t, 3, saveAndLeave, terminate); got.status != exitDone || !strings.HasSuffix(got.out, "done after 3 epochs\n") {
		t.Errorf("got %+v", got)
	}
	j.mustHaveNoState(t)
}

func TestTheSecondOfTwoRequestsIsNotNeeded(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	if got := j.run(t, 1, saveAndLeave, saveAndLeave); got.status != exitSaved {
		t.Errorf("got %+v", got)
	}
}

func TestARunWithoutAFileRefusesToLeaveButCanBeTerminated(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	j.options.state = ""
	if got := j.run(t, 1, saveAndLeave); got.status != exitDone || !strings.Contains(got.messages, "no --state") {
		t.Errorf("got %+v", got)
	}
	if got := j.run(t, 1, terminate); got.status != exitTerminated || got.out != lines(1, 1, 3) {
		t.Errorf("got %+v", got)
	}
}

var errBroken = errors.New("broken")

func TestARunEndsWhereItsWorkFails(t *testing.T) {
	t.Parallel()
	j := newJob(t, 5)
	j.failAt = 3
	if got := j.run(t, -1); got.status != exitFailed || !errors.Is(got.err, errBroken) || got.out != lines(1, 2, 5) {
		t.Errorf("got %+v", got)
	}
}

func TestTheStateOfOtherWorkIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*options){
		"other input":  func(o *options) { o.params.input = 2 },
		"other seed":   func(o *options) { o.params.seed = 2 },
		"other scale":  func(o *options) { o.params.scale = 2 },
		"other epochs": func(o *options) { o.params.epochs = 9 },
	} {
		j := newJob(t, 5)
		j.run(t, 2, saveAndLeave)
		change(&j.options)
		if got := j.run(t, -1); got.status != exitUsage || !errors.Is(got.err, errUsage) || got.out != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		if _, err := os.Stat(j.options.state); err != nil {
			t.Errorf("%s: the state is gone: %v", name, err)
		}
	}
}

func TestADamagedStateIsNotOverwritten(t *testing.T) {
	t.Parallel()
	j := newJob(t, 5)
	if err := os.WriteFile(j.options.state, []byte("half a checkp"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := j.run(t, 1, saveAndLeave); got.status != exitUsage || !errors.Is(got.err, errCorrupt) {
		t.Errorf("got %+v", got)
	}
	if data, err := os.ReadFile(j.options.state); err != nil || string(data) != "half a checkp" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestOtherThreadsAndBatchesMayGoOn(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	j.run(t, 1, saveAndLeave)
	j.options.params.team, j.options.params.batch = newTeam(2), 64
	if got := j.run(t, -1); got.status != exitDone || got.out != lines(2, 3, 3)+"done after 3 epochs\n" {
		t.Errorf("got %+v", got)
	}
}
