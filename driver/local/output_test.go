package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	outputs "pitchpipe/driver/output"
)

// hostile starts a job of the user nobody in its own directory. Its output is out.txt there.
func (b *bench) hostile(t *testing.T, lines ...string) (driver.Job, string) {
	t.Helper()
	needsRootAndNobody(t)
	passable(t, b.dir)
	dir := t.TempDir()
	passable(t, dir)
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	spec := script(append([]string{"#SBATCH --output=out.txt"}, lines...)...)
	spec.Owner, spec.Dir = "nobody", dir
	return b.start(t, "hostile", spec), dir
}

// await returns when the file is there.
func await(t *testing.T, path string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%s does not come", path)
		}
	}
}

func TestLogsOpenNoPipeOfTheJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	// The writer's open returns when somebody opens the other end, if for a moment only.
	job, dir := b.hostile(t, "rm out.txt; mkfifo out.txt; (exec 3>out.txt; touch opened) & touch ready; sleep 600")
	await(t, filepath.Join(dir, "ready"))
	for range 3 {
		if _, err := b.d.Logs(t.Context(), job.ID, 0); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("Logs: %v, want %v", err, driver.ErrUnsupported)
		}
	}
	time.Sleep(100 * time.Millisecond) // enough for the writer to go on, were it let
	if _, err := os.Stat(filepath.Join(dir, "opened")); err == nil {
		t.Error("the driver opened the job's pipe")
	}
}

func TestAnOutputThatHangsHoldsUpNoOtherJob(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil)
	stuck := drivertest.Hang(t)
	job, dir := b.hostile(t, "touch ready; sleep 600")
	await(t, filepath.Join(dir, "ready"))
	if err := errors.Join(os.Remove(filepath.Join(dir, "out.txt")), os.Symlink(filepath.Join(stuck, "file"), filepath.Join(dir, "out.txt"))); err != nil {
		t.Fatal(err)
	}
	other := script("echo fine")
	other.Owner, other.Dir = "daemon", "/"
	fine := b.ended(t, b.start(t, "fine", other).ID, driver.Succeeded)

	intent := driver.Intent{
		ID: "intent", Job: job.ID, Attempt: 1, Fingerprint: job.Fingerprint, Change: driver.Change{Env: map[string]string{"A": "b"}},
		Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Done: "^saved$", Grace: time.Minute},
	}
	hostile := make(chan error, 2)
	go func() {
		_, err := b.d.Advance(t.Context(), intent)
		hostile <- err
	}()
	go func() {
		_, err := b.d.Logs(t.Context(), job.ID, 0)
		hostile <- err
	}()
	// While these wait, others do not.
	for len(hostile) == 0 {
		began := time.Now()
		if _, err := b.d.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text := output(t, b.d, fine.ID); text != "fine\n" {
			t.Fatalf("the other's output is %q", text)
		}
		if took := time.Since(began); took > outputs.Patience/2 {
			t.Fatalf("status and logs took %v while an output hangs", took)
		}
		time.Sleep(time.Millisecond)
	}
	for range 2 {
		if err := <-hostile; !errors.Is(err, driver.ErrTransient) {
			t.Errorf("the job whose output hangs: %v, want %v", err, driver.ErrTransient)
		}
	}
}
