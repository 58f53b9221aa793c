package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
)

func listening(c *slurm.Config) { c.Listener = []string{"/bin/pitchpipe", "listen"} }

func TestAListenerIsStartedOnceAnAttemptAndInsideTheJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, listening)
	job := r.start(t)
	progress := driver.Progress{Pattern: "epoch", Total: 7}
	if err := r.d.Listen(t.Context(), job.ID, 1, progress); !errors.Is(err, driver.ErrConflict) {
		t.Fatalf("a job that waits: %v, want %v", err, driver.ErrConflict)
	}
	r.f.run(job.ID)
	for range 3 {
		if err := r.d.Listen(t.Context(), job.ID, 1, progress); err != nil {
			t.Fatal(err)
		}
		r.reopen(t) // what was started is durable
	}
	if n := r.f.count("srun"); n != 1 {
		t.Fatalf("%d listeners, want one", n)
	}
	call := r.f.last("srun")
	for _, want := range []string{"--jobid=" + string(job.ID), "--overlap", "/bin/pitchpipe listen --pattern epoch", "--offset 0", "--total 7"} {
		if !strings.Contains(call, want) {
			t.Errorf("%s\nlacks %s", call, want)
		}
	}
	if err := r.d.Listen(t.Context(), job.ID, 2, progress); !errors.Is(err, driver.ErrConflict) {
		t.Errorf("an attempt that is not: %v, want %v", err, driver.ErrConflict)
	}
}

func TestWithoutAListenerNothingIsStarted(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	job := r.start(t)
	r.f.run(job.ID)
	if err := r.d.Listen(t.Context(), job.ID, 1, driver.Progress{Pattern: "epoch"}); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("no listener is configured: %v, want %v", err, driver.ErrUnsupported)
	}
	if n := r.f.count("srun"); n != 0 {
		t.Errorf("%d steps", n)
	}
}

func TestTheNextAttemptIsListenedToFromWhereItsOutputBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		after  func(before string) string // the output when the next attempt is listened to
		offset func(before string) int
	}{
		{"an output that is appended to", func(b string) string { return b + "epoch 2\n" }, func(b string) int { return len(b) }},
		{"an output that began anew", func(string) string { return "epoch 2\n" }, func(string) int { return 0 }},
		{"an output that began anew and is longer already", func(b string) string { return strings.Repeat("x\n", 2*len(b)) }, func(string) int { return 0 }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, listening)
			job := r.start(t)
			out := filepath.Join(t.TempDir(), "out")
			before := strings.Repeat("epoch 1\n", 20) + "saved\n"
			put := func(text string) {
				t.Helper()
				if err := os.WriteFile(out, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			put("")
			r.f.with(job.ID, func(j *fakeJob) { j.out = out })
			r.f.run(job.ID)
			job = r.job(t, job.ID)
			in := driver.Intent{
				ID: "i", Job: job.ID, Attempt: 1, Fingerprint: job.Fingerprint, Change: driver.Change{Cores: 2},
				Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: 1 << 40, Done: "saved"},
			}
			asked := false
			for {
				step, err := r.d.Advance(t.Context(), in)
				if err != nil {
					t.Fatal(err)
				}
				if step.Kind == driver.StepCheckpointing && !asked {
					put(before)
					asked = true
				}
				if step.Kind.Done() {
					break
				}
			}
			r.f.run(job.ID)
			put(c.after(before))
			if err := r.d.Listen(t.Context(), job.ID, 2, driver.Progress{Pattern: "epoch"}); err != nil {
				t.Fatal(err)
			}
			if call, want := r.f.last("srun"), fmt.Sprintf("--offset %d ", c.offset(before)); !strings.Contains(call, want) {
				t.Errorf("%s\nlacks %s", call, want)
			}
		})
	}
}
