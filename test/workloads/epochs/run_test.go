package epochs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/test/workloads/checkpoint"
	"pitchpipe/test/workloads/epochs"
	"pitchpipe/test/workloads/team"
)

// counter is work whose whole state is the sum of the epochs done. onEpoch, where
// set, is called inside of each.
type counter struct {
	sum     uint64
	onEpoch func(n int)
}

func (c *counter) Epoch(_ context.Context, n int) (epochs.Result, error) {
	c.sum += uint64(n)
	if c.onEpoch != nil {
		c.onEpoch(n)
	}
	return epochs.Result{Loss: float64(c.sum), Acc: 0.5}, nil
}
func (c *counter) Save(w io.Writer) error { return binary.Write(w, binary.LittleEndian, c.sum) }
func (c *counter) Load(r io.Reader) error { return binary.Read(r, binary.LittleEndian, &c.sum) }

type outcome struct {
	status        int
	err           error
	out, messages string
}

// job runs counters over one checkpoint file. ask is sent inside of epoch askIn,
// or before the start where askIn is 0.
type job struct {
	options epochs.Options
	epochs  []int // done so far over all runs
}

func newJob(t *testing.T, total int) *job {
	return &job{options: epochs.Options{
		State:  filepath.Join(t.TempDir(), "job.ckpt"),
		Params: epochs.Params{Epochs: total, Input: 1, Scale: 1, Team: team.New(1)},
	}}
}

func (j *job) run(t *testing.T, askIn int, ask ...epochs.Request) outcome {
	t.Helper()
	requests := make(chan epochs.Request, 8)
	send := func() {
		for _, q := range ask {
			requests <- q
		}
	}
	if askIn == 0 {
		send()
	}
	kind := epochs.Kind{Name: "counter", New: func(epochs.Params) (epochs.Work, error) {
		return &counter{onEpoch: func(n int) {
			j.epochs = append(j.epochs, n)
			if n == askIn {
				send()
			}
		}}, nil
	}}
	var out, messages strings.Builder
	status, err := epochs.Run(t.Context(), kind, j.options, requests, epochs.Streams{Out: &out, Messages: &messages})
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
	if _, err := os.Stat(j.options.State); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the checkpoint is there (%v), want none", err)
	}
}

func TestARunLeftAloneDoesAllEpochsAndLeavesNoState(t *testing.T) {
	t.Parallel()
	j := newJob(t, 4)
	got := j.run(t, -1)
	if want := lines(1, 4, 4) + "done after 4 epochs\n"; got.status != epochs.ExitDone || got.err != nil || got.out != want || got.messages != "" {
		t.Errorf("got %+v, want output\n%s", got, want)
	}
	j.mustHaveNoState(t)
}

func TestASavedRunGoesOnWhereItLeftOff(t *testing.T) {
	t.Parallel()
	for request, status := range map[epochs.Request]int{
		epochs.SaveAndLeave: epochs.ExitSaved,
		epochs.Terminate:    epochs.ExitTerminated,
	} {
		j := newJob(t, 5)
		if got := j.run(t, 2, request); got.status != status || got.err != nil || got.out != lines(1, 2, 5) {
			t.Errorf("request %v: first run %+v, want status %d", request, got, status)
		}
		if got := j.run(t, 4, request); got.status != status || got.out != lines(3, 4, 5) {
			t.Errorf("request %v: second run %+v, want status %d", request, got, status)
		}
		if got := j.run(t, -1); got.status != epochs.ExitDone || got.out != lines(5, 5, 5)+"done after 5 epochs\n" {
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
	if got := j.run(t, 0, epochs.SaveAndLeave); got.status != epochs.ExitSaved || got.out != "" {
		t.Errorf("got %+v", got)
	}
	if got := j.run(t, -1); got.status != epochs.ExitDone || got.out != lines(1, 3, 3)+"done after 3 epochs\n" {
		t.Errorf("got %+v", got)
	}
}

func TestARequestInTheLastEpochDoesNotKeepTheRunFromEnding(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	if got := j.run(t, 3, epochs.SaveAndLeave, epochs.Terminate); got.status != epochs.ExitDone || !strings.HasSuffix(got.out, "done after 3 epochs\n") {
		t.Errorf("got %+v", got)
	}
	j.mustHaveNoState(t)
}

func TestTheSecondOfTwoRequestsIsNotNeeded(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	if got := j.run(t, 1, epochs.SaveAndLeave, epochs.SaveAndLeave); got.status != epochs.ExitSaved {
		t.Errorf("got %+v", got)
	}
}

func TestARunWithoutAFileRefusesToLeaveButCanBeTerminated(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	j.options.State = ""
	if got := j.run(t, 1, epochs.SaveAndLeave); got.status != epochs.ExitDone || !strings.Contains(got.messages, "no --state") {
		t.Errorf("got %+v", got)
	}
	if got := j.run(t, 1, epochs.Terminate); got.status != epochs.ExitTerminated || got.out != lines(1, 1, 3) {
		t.Errorf("got %+v", got)
	}
}

func TestAnIgnoredSignalIsIgnored(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	j.options.IgnoreSignal = true
	if got := j.run(t, 1, epochs.SaveAndLeave); got.status != epochs.ExitDone || got.out != lines(1, 3, 3)+"done after 3 epochs\n" {
		t.Errorf("got %+v", got)
	}
	if got := j.run(t, 1, epochs.Terminate); got.status != epochs.ExitTerminated {
		t.Errorf("SIGTERM was ignored as well: %+v", got)
	}
}

func TestARunFailsWhereItIsToldTo(t *testing.T) {
	t.Parallel()
	j := newJob(t, 5)
	j.options.FailAt = 3
	if got := j.run(t, -1); got.status != epochs.ExitFailed || !errors.Is(got.err, epochs.ErrAsked) || got.out != lines(1, 2, 5) {
		t.Errorf("got %+v", got)
	}
}

func TestARegularSaveBoundsWhatAFailureCosts(t *testing.T) {
	t.Parallel()
	j := newJob(t, 6)
	j.options.SaveEvery, j.options.FailAt = 2, 6
	if got := j.run(t, -1); got.status != epochs.ExitFailed || got.out != lines(1, 5, 6) {
		t.Fatalf("got %+v", got)
	}
	j.options.FailAt = 0
	if got := j.run(t, -1); got.out != lines(5, 6, 6)+"done after 6 epochs\n" {
		t.Errorf("got %+v, want it to go on after epoch 4", got)
	}
	j.mustHaveNoState(t)
}

func TestTheStateOfOtherWorkIsRefusedAndKept(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*epochs.Options){
		"other input":  func(o *epochs.Options) { o.Params.Input = 2 },
		"other seed":   func(o *epochs.Options) { o.Params.Seed = 2 },
		"other scale":  func(o *epochs.Options) { o.Params.Scale = 2 },
		"other epochs": func(o *epochs.Options) { o.Params.Epochs = 9 },
	} {
		j := newJob(t, 5)
		j.run(t, 2, epochs.SaveAndLeave)
		change(&j.options)
		if got := j.run(t, -1); got.status != epochs.ExitUsage || !errors.Is(got.err, epochs.ErrUsage) || got.out != "" {
			t.Errorf("%s: got %+v", name, got)
		}
		if _, err := os.Stat(j.options.State); err != nil {
			t.Errorf("%s: the state is gone: %v", name, err)
		}
	}
}

func TestADamagedStateIsNotOverwritten(t *testing.T) {
	t.Parallel()
	j := newJob(t, 5)
	if err := os.WriteFile(j.options.State, []byte("half a checkp"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := j.run(t, 1, epochs.SaveAndLeave); got.status != epochs.ExitUsage || !errors.Is(got.err, checkpoint.ErrCorrupt) {
		t.Errorf("got %+v", got)
	}
	if data, err := os.ReadFile(j.options.State); err != nil || string(data) != "half a checkp" {
		t.Errorf("the file holds %q, %v", data, err)
	}
}

func TestOtherThreadsAndBatchesMayGoOn(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3)
	j.run(t, 1, epochs.SaveAndLeave)
	j.options.Params.Team, j.options.Params.Batch = team.New(2), 64
	if got := j.run(t, -1); got.status != epochs.ExitDone || got.out != lines(2, 3, 3)+"done after 3 epochs\n" {
		t.Errorf("got %+v", got)
	}
}
