package local_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local"
)

const crashEpochs = 15

// TestCrashAtEveryStep kills the process of a driver at each durable step of the
// life of a job that is moved once. The next process goes on with the same
// request and the same intent.
func TestCrashAtEveryStep(t *testing.T) {
	t.Parallel()
	for _, step := range []string{
		"numbered", "claimed", "created", "running", "planned", "forked", "asking",
		"signal-sent", "ended", "stopped", "changed", "queued",
	} {
		t.Run("after "+step, func(t *testing.T) {
			t.Parallel()
			crashes := crashAt(t, cluster(t), step, false)
			if crashes == 0 {
				t.Errorf("step %s was never reached", step)
			}
		})
	}
	// The job has saved nothing by then, and starts again.
	for _, step := range []string{"stopping", "end-sent", "ended", "stopped", "changed", "queued"} {
		t.Run("discarded after "+step, func(t *testing.T) {
			t.Parallel()
			crashes := crashAt(t, cluster(t), step, true)
			if crashes == 0 {
				t.Errorf("step %s was never reached", step)
			}
		})
	}
}

// crashAt runs driver processes until one comes to the end, the first two of them
// dying at the step, and checks the state of the job.
func crashAt(t *testing.T, cluster, step string, discard bool) (crashes int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: t.TempDir()}
	b.cfg = local.Config{
		Dir: filepath.Join(b.dir, "state"), Cluster: cluster, Supervisor: []string{exe, "supervise"}, CgroupRoot: local.DefaultCgroupRoot, Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
	script := filepath.Join(b.dir, "job.sh")
	spec := b.job(t, drivertest.Behaviour{Epochs: crashEpochs, Epoch: 400 * time.Millisecond, Saves: true})
	if err := os.WriteFile(script, spec.Source, 0o600); err != nil {
		t.Fatal(err)
	}
	ended := false
	for run := 0; run < 6 && !ended; run++ {
		at := step
		if run >= 2 {
			at = "never"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
		out, err := exec.CommandContext(ctx, exe, "crash", b.dir, cluster, at, strconv.FormatBool(discard)).CombinedOutput()
		cancel()
		var exit *exec.ExitError
		switch {
		case err == nil:
			ended = true
		case errors.As(err, &exit) && exit.ProcessState.Sys().(interface{ Signaled() bool }).Signaled():
			crashes++
		default:
			t.Fatalf("run %d: %v\n%s", run, err, out)
		}
	}
	b.open(t)
	t.Cleanup(func() { b.cleanUp(t) })
	h := b.harness(t)
	jobs, err := h.Driver.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(jobs) != 1 || jobs[0].State != driver.Succeeded || len(jobs[0].Attempts) != 2 {
		t.Fatalf("jobs %+v, want one that succeeded in its second attempt", jobs)
	}
	if got := jobs[0].Attempts[1]; got.Intent != "move" || got.Change.TimeLimit != time.Hour {
		t.Errorf("second attempt %+v, want the intent's", got)
	}
	var all strings.Builder
	for e := range crashEpochs {
		fmt.Fprintf(&all, "epoch %d/%d\n", e+1, crashEpochs)
	}
	got, want := output(t, b.d, jobs[0].ID), all.String()
	discarded, ok := strings.CutSuffix(got, want)
	if !ok || !strings.HasPrefix(want, discarded) || discard == (discarded == "") {
		t.Errorf("output:\n%swant, with what was discarded before it:\n%s", got, want)
	}
	return crashes
}

// output reads the job's output without the driver's own lines.
func output(t *testing.T, d driver.Driver, id driver.JobID) string {
	t.Helper()
	r, err := d.Logs(t.Context(), id, 0)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "pitchpipe: ") {
			out.WriteString(lines.Text() + "\n")
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	return out.String()
}

// crashDriver is the process that is killed. It starts the job, moves it once and
// waits for its end, going on from whatever an earlier process left.
func crashDriver(args []string) int {
	dir, cluster, at, discard := args[0], args[1], args[2], args[3] == "true"
	if err := crashRun(dir, cluster, at, discard); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func crashRun(dir, cluster, at string, discard bool) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	d, err := local.New(local.Config{
		Dir: filepath.Join(dir, "state"), Cluster: cluster, Supervisor: []string{exe, "supervise"}, CgroupRoot: local.DefaultCgroupRoot,
		AfterStep: func(step string) {
			if step == at {
				if err := unix.Kill(os.Getpid(), unix.SIGKILL); err != nil {
					panic(err)
				}
				select {} // until it arrives
			}
		},
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	source, err := os.ReadFile(filepath.Join(dir, "job.sh"))
	if err != nil {
		return err
	}
	job, err := d.Start(ctx, "request", driver.Spec{Filename: "job.sh", Source: source, Dir: dir})
	if err != nil {
		return err
	}
	in, err := crashIntent(ctx, d, job.ID, filepath.Join(dir, "intent.json"), discard)
	if err != nil {
		return err
	}
	for step := (driver.Step{}); !step.Kind.Done(); time.Sleep(10 * time.Millisecond) {
		if step, err = d.Advance(ctx, in); err != nil {
			return err
		}
	}
	for !job.State.Ended() {
		if job, err = d.Get(ctx, job.ID); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	cancel()
	return <-done
}

// crashIntent makes the intent durable before the first Advance, as the
// controller does.
func crashIntent(ctx context.Context, d *local.Driver, id driver.JobID, path string, discard bool) (driver.Intent, error) {
	var in driver.Intent
	if err := durable.ReadJSON(path, &in); err == nil {
		return in, nil
	}
	for {
		r, err := d.Logs(ctx, id, 0)
		if err != nil {
			return in, err
		}
		text, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close(), ctx.Err()); err != nil {
			return in, err
		}
		if strings.Count(string(text), "epoch ") >= 2 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	job, err := d.Get(ctx, id)
	if err != nil {
		return in, err
	}
	in = driver.Intent{
		ID: "move", Job: id, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
		Change:     driver.Change{TimeLimit: time.Hour},
		Checkpoint: &driver.Checkpoint{Signal: "USR1", Grace: patience, Exit: savedExit},
		Note:       "moved by a test", Discard: discard,
	}
	return in, durable.WriteJSON(path, in, 0o600)
}
