package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/supervise"
)

func (b *bench) ranInOneAttempt(t *testing.T, id driver.JobID) {
	t.Helper()
	if job := b.ended(t, id, driver.Succeeded); len(job.Attempts) != 1 {
		t.Errorf("%d attempts, want one", len(job.Attempts))
	}
	if got := output(t, b.d, id); got != "once\n" {
		t.Errorf("output %q, want that it ran once", got)
	}
}

func TestAnAttemptThatCouldNotBeginIsLaunchedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	spec := script("echo once")
	spec.NotBefore = time.Now().Add(3 * time.Second)
	job := b.start(t, "request", spec)
	// The supervisor cannot make the output, for a while.
	path := filepath.Join(b.cfg.Dir, "jobs", string(job.ID), "output.log")
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	job.Attempt = 1
	b.until(t, "the first launch fails", job.ID, func(driver.Job) bool {
		_, err := os.Stat(b.attemptFile(job, supervise.ExitFile))
		return err == nil
	})
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	b.ranInOneAttempt(t, job.ID)
}

func TestAnAttemptWhoseSupervisorDiedBeforeTheJobIsLaunchedAgain(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The first supervisor dies as soon as it counts as started.
	dies := filepath.Join(t.TempDir(), "supervisor")
	text := "#!/bin/sh\nif mkdir " + dies + ".once 2>/dev/null; then echo '{}' >\"$1/started.json\"; exit 1; fi\nexec " + exe + " supervise \"$@\"\n"
	if err := os.WriteFile(dies, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	b := newBench(t, func(c *local.Config) { c.Supervisor = []string{"/bin/sh", dies} })
	b.ranInOneAttempt(t, b.start(t, "request", script("echo once")).ID)
}

func TestAMachineWithLessRoomThanBefore(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	b := newBench(t, func(c *local.Config) { c.MemoryBytes = 1024 * mebibyte })
	soon := time.Now().Add(6 * time.Second)
	large, tuned := script("#SBATCH --mem=512M", "echo once"), script("#SBATCH --mem=128M", "echo once")
	large.NotBefore, tuned.NotBefore = soon, soon
	first := b.start(t, "large", large)
	second := b.start(t, "tuned", tuned)
	in := driver.Intent{
		ID: "intent", Job: second.ID, Fingerprint: second.Fingerprint, Change: driver.Change{MemoryBytes: 512 * mebibyte},
	}
	if step, err := b.d.Advance(t.Context(), in); err != nil || step.Kind != driver.StepChanged {
		t.Fatalf("step %+v, %v, want %s", step, err, driver.StepChanged)
	}
	b.shut(t)
	b.cfg.MemoryBytes = 256 * mebibyte
	b.open(t)
	job := b.ended(t, second.ID, driver.Succeeded)
	if a := job.Attempts[0]; a.Change.MemoryBytes != 0 || a.Intent != "" {
		t.Errorf("attempt %+v, want the owner's settings, as the change does not fit", a)
	}
	b.ranInOneAttempt(t, b.start(t, "behind", script("echo once")).ID)
	job = b.until(t, "it is there", first.ID, func(driver.Job) bool { return true })
	if job.State != driver.Pending || !strings.Contains(job.Detail, "larger machine") {
		t.Errorf("the large job is %s (%s), want that it waits and says why", job.State, job.Detail)
	}
	b.shut(t)
	b.cfg.MemoryBytes = 1024 * mebibyte
	b.open(t)
	b.ranInOneAttempt(t, first.ID)
}
