package slurm_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

func TestAListenerDoesNotReadWhatIsNotThisAttempts(t *testing.T) {
	t.Parallel()
	r := newRig(t, listening)
	dir := t.TempDir()
	out, file := filepath.Join(dir, "out"), filepath.Join(dir, "progress")
	for _, path := range []string{out, file} {
		if err := os.WriteFile(path, []byte("epoch of an earlier job\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.f.stdout = out
	for i, p := range []driver.Progress{{Pattern: "epoch"}, {Pattern: "epoch", File: file}} {
		job, err := r.d.Start(t.Context(), driver.RequestID(fmt.Sprint("request ", i)), spec())
		if err != nil {
			t.Fatal(err)
		}
		r.f.run(job.ID)
		if err := r.d.Listen(t.Context(), job.ID, 1, p); err != nil {
			t.Fatal(err)
		}
		if call := r.f.last("srun"); !strings.Contains(call, "--offset 24 ") {
			t.Errorf("%s\nreads epochs of an earlier job", call)
		}
	}
}

func TestAListenerThatDiedGoesOnBehindWhatIsThere(t *testing.T) {
	t.Parallel()
	r := newRig(t, listening)
	r.f.stdout = filepath.Join(t.TempDir(), "out")
	job := r.start(t)
	r.f.run(job.ID)
	progress := driver.Progress{Pattern: "epoch"}
	if err := r.d.Listen(t.Context(), job.ID, 1, progress); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(r.f.stdout, []byte("epoch 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.f.mu.Lock()
	clear(r.f.steps)
	r.f.mu.Unlock()
	j, err := slurm.OpenJournal(r.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	record, err := j.Read(job.ID)
	if err != nil {
		t.Fatal(err)
	}
	record.Listening.At = record.Listening.At.Add(-time.Hour)
	if err := j.Write(record); err != nil {
		t.Fatal(err)
	}
	if err := r.d.Listen(t.Context(), job.ID, 1, progress); err != nil {
		t.Fatal(err)
	}
	if call := r.f.last("srun"); r.f.count("srun") != 2 || !strings.Contains(call, "--offset 8 ") {
		t.Errorf("%d listeners, the last %s\nwant a second one behind the epoch that was told", r.f.count("srun"), call)
	}
}
