package local_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/local"
)

// disk is a small file system for a driver's state that can be full.
type disk struct{ dir string }

// newFullBench makes a bench whose state has its own disk.
func newFullBench(t *testing.T) (*bench, disk) {
	t.Helper()
	var d disk
	b := newBench(t, func(c *local.Config) {
		d.dir = c.Dir
		if err := os.Mkdir(d.dir, 0o711); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("pitchpipe-test", d.dir, "tmpfs", 0, "size=1m,mode=711"); err != nil {
			t.Skip("no file system of its own for this test: ", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(d.dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	})
	t.Cleanup(func() { // before the jobs are ended
		if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	})
	return b, d
}

func (d disk) filler() string { return filepath.Join(d.dir, "filler") }

// fill leaves no room for a single byte.
func (d disk) fill(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 4096)
	for err == nil {
		_, err = f.Write(block)
	}
	if closeErr := f.Close(); !errors.Is(err, unix.ENOSPC) || closeErr != nil {
		t.Fatalf("filling the disk: %v, %v", err, closeErr)
	}
}

// free makes room again, which takes the kernel a moment: all of it, since what comes back
// later would be room on a disk that was filled again.
func (d disk) free(t *testing.T) {
	t.Helper()
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		const slack = 64 << 10 // the driver's own files come and go
		missing := d.missing(t)
		if missing <= slack {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d bytes are not free again", missing)
		}
	}
}

// missing are the bytes that are not free and not in a file.
func (d disk) missing(t *testing.T) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(d.dir, &fs); err != nil {
		t.Fatal(err)
	}
	missing := int64(fs.Blocks-fs.Bfree) * fs.Bsize //nolint:gosec // a small disk
	err := filepath.WalkDir(d.dir, func(path string, _ os.DirEntry, err error) error {
		var st unix.Stat_t
		if err == nil {
			err = unix.Lstat(path, &st)
		}
		missing -= st.Blocks * 512
		if errors.Is(err, os.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

// elsewhere lets a job write its output where there is room.
func (b *bench) elsewhere(spec driver.Spec) driver.Spec {
	spec.Source = []byte(strings.Replace(string(spec.Source), "\n", "\n#SBATCH --output="+filepath.Join(b.dir, "output-%j")+"\n", 1))
	return spec
}

func TestAFullDiskStartsNothingTwice(t *testing.T) {
	t.Parallel()
	b, d := newFullBench(t)
	spec := b.elsewhere(script("echo once"))
	for range 3 {
		d.fill(t)
		if job, err := b.d.Start(t.Context(), "request", spec); !errors.Is(err, driver.ErrTransient) {
			t.Fatalf("Start on a full disk: %+v, %v; want %v", job, err, driver.ErrTransient)
		}
		d.free(t)
	}
	b.ranInOneAttempt(t, b.start(t, "request", spec).ID)
	if jobs, err := b.d.List(t.Context()); err != nil || len(jobs) != 1 {
		t.Errorf("jobs %v (%v), want one", jobs, err)
	}
}

// A job is queued while there is room, and is to start, run and end while there is
// none.
func TestAJobThatStartsOnAFullDiskRunsOnceWhenThereIsRoom(t *testing.T) {
	t.Parallel()
	b, d := newFullBench(t)
	spec := b.elsewhere(script("echo once"))
	spec.NotBefore = time.Now().Add(3 * time.Second)
	job := b.start(t, "request", spec)
	d.fill(t)
	time.Sleep(time.Until(spec.NotBefore) + 3*time.Second)
	d.free(t)
	b.ranInOneAttempt(t, job.ID)
}

func TestAJobThatEndsOnAFullDiskIsNotLost(t *testing.T) {
	t.Parallel()
	b, d := newFullBench(t)
	gone := filepath.Join(b.dir, "go")
	job := b.start(t, "request", b.elsewhere(script("echo once", "until [ -f "+gone+" ]; do sleep 0.05; done")))
	b.until(t, "it runs", job.ID, func(j driver.Job) bool { return output(t, b.d, j.ID) != "" })
	d.fill(t)
	if err := os.WriteFile(gone, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	time.Sleep(3 * time.Second) // long enough for one that gives up
	if job := b.until(t, "it is there", job.ID, func(driver.Job) bool { return true }); job.State != driver.Running {
		t.Errorf("the job is %s (%s) before anybody could write it down", job.State, job.Detail)
	}
	d.free(t)
	b.ranInOneAttempt(t, job.ID)
}

// The disk is full before every step of a move, and free after it.
func TestAMoveOnAFullDiskIsTakenStepByStep(t *testing.T) {
	t.Parallel()
	b, d := newFullBench(t)
	const epochs = 20
	job := b.start(t, "request", b.elsewhere(b.job(t, drivertest.Behaviour{Epochs: epochs, Epoch: 400 * time.Millisecond, Saves: true})))
	job = b.until(t, "it runs", job.ID, func(j driver.Job) bool { return strings.Contains(output(t, b.d, j.ID), "epoch 2/") })
	in := driver.Intent{
		ID: "intent", Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint,
		Change:     driver.Change{TimeLimit: time.Hour, Live: map[string]string{"lr": "1"}},
		Checkpoint: &driver.Checkpoint{Signal: "SIGUSR1", Grace: patience, Exit: savedExit},
	}
	refused := 0
	b.until(t, "the move is made", job.ID, func(driver.Job) bool {
		d.fill(t)
		step, err := b.d.Advance(t.Context(), in)
		if err != nil && !errors.Is(err, driver.ErrTransient) {
			t.Fatalf("Advance on a full disk: %v, want %v", err, driver.ErrTransient)
		}
		if err != nil {
			refused++
		}
		d.free(t)
		if err != nil {
			if step, err = b.d.Advance(t.Context(), in); err != nil {
				t.Fatalf("Advance when there is room again: %v", err)
			}
		}
		return step.Kind == driver.StepStarted
	})
	if refused < 3 {
		t.Errorf("%d steps were refused on the full disk, want the asking, the change and the start", refused)
	}
	job = b.ended(t, job.ID, driver.Succeeded)
	var want strings.Builder
	for e := range epochs {
		fmt.Fprintf(&want, "epoch %d/%d\n", e+1, epochs)
	}
	if got := output(t, b.d, job.ID); got != want.String() || len(job.Attempts) != 2 {
		t.Errorf("%d attempts, output:\n%swant two and:\n%s", len(job.Attempts), got, want.String())
	}
}
