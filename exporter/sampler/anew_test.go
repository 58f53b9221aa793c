package sampler_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/sampler"
)

func nomad(id string) attrib.Key { return attrib.Key{Manager: attrib.Nomad, ID: id, Attempt: 1} }

// folder is a directory that a test makes again under its name, as schedulers do with
// the cgroup of a job that they start again.
type folder struct {
	path string
	old  int
}

func (f *folder) inode(t *testing.T) uint64 {
	t.Helper()
	st, err := os.Stat(f.path)
	if err != nil {
		t.Fatal(err)
	}
	return st.Sys().(*syscall.Stat_t).Ino
}

// renew keeps the old one under another name, so that its number isn't given again.
func (f *folder) renew(t *testing.T) {
	t.Helper()
	f.old++
	if err := os.Rename(f.path, f.path+".old"+string(rune('0'+f.old))); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(f.path, 0o755); err != nil { //nolint:gosec // as cgroups are
		t.Fatal(err)
	}
}

// A job that is requeued may run again, and report, before the sampler has looked.
func TestAReportOfAStartThatNoScanHasSeenIsThatStarts(t *testing.T) {
	t.Parallel()
	dir := folder{path: filepath.Join(t.TempDir(), "job_42")}
	if err := os.Mkdir(dir.path, 0o755); err != nil { //nolint:gosec // as cgroups are
		t.Fatal(err)
	}
	for _, how := range []string{"from within the job", "on its behalf"} {
		t.Run(how, func(t *testing.T) { //nolint:paralleltest // the directory is one
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				b := &burn{from: time.Now(), cores: 2, dirs: map[string]string{"unified": dir.path}, birth: dir.inode(t), confirmed: true}
				w.jobs[slurm("42")], w.pids[77] = b, slurm("42")
				s, store := run(t, w)
				tell := func(epoch int) {
					t.Helper()
					r := api.Report{Epoch: epoch, Nth: epoch, Time: time.Now()}
					var err error
					if how == "on its behalf" {
						err = s.MarkFor(t.Context(), "slurm/42", 0, r)
					} else {
						err = s.Mark(t.Context(), who(77, 1000), r)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				wait(2010 * time.Millisecond)
				tell(1)
				before := w.scans
				tell(2)
				if w.scans != before {
					t.Errorf("a report of a job that is the same made the sampler look for jobs")
				}
				dir.renew(t)
				w.change(func() { b.birth = dir.inode(t) })
				tell(3)
				for attempt, want := range map[int]int{1: 2, 2: 3} {
					win, ok := store.Window("slurm/42", attempt, 0, 0, func(api.Job) bool { return true })
					last := 0
					for _, sample := range win.Samples {
						if sample.Mark != nil {
							last = sample.Mark.Epoch
						}
					}
					if !ok || last != want || win.Job.Ended != (attempt == 1) {
						t.Errorf("attempt %d: there %v, ended %v, its last epoch %d, want %d", attempt, ok, win.Job.Ended, last, want)
					}
				}
			})
		})
	}
}

// Where Nomad's client restarts a task in place with new cgroups, the allocation is
// still the one attempt that the controller knows.
func TestATaskThatNomadRestartsInPlaceStaysOneAttempt(t *testing.T) {
	t.Parallel()
	for name, gap := range map[string]time.Duration{"at once": 0, "after a while": 15 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				key := nomad("5b2c7a94-0000-4000-8000-000000000001.train")
				b := &burn{from: time.Now(), cores: 2, dirs: map[string]string{"freezer": "/nomad/x", "unified": "/nomad/x"}, birth: 1, confirmed: true}
				w.jobs[key] = b
				s, store := run(t, w)
				tell := func(r api.Report) {
					t.Helper()
					r.Time = time.Now()
					if err := s.MarkFor(t.Context(), "nomad/"+key.ID, 1, r); err != nil {
						t.Fatal(err)
					}
				}
				wait(5 * time.Second)
				tell(api.Report{Epoch: 4, Nth: 1})
				tell(api.Report{Saved: true, Nth: 1})
				first := charged(store)[key].Total()
				w.change(func() { b.to = time.Now() })
				wait(gap)
				w.change(func() { *b = burn{from: time.Now(), cores: 2, dirs: b.dirs, birth: 2, confirmed: true} })
				wait(3 * time.Second)
				tell(api.Report{Epoch: 4, Nth: 1}) // the output goes on, and is read again
				tell(api.Report{Saved: true, Nth: 1})
				tell(api.Report{Epoch: 1, Nth: 2})
				win, ok := store.Window("nomad/"+key.ID, 1, 0, 0, func(api.Job) bool { return true })
				if !ok || win.Job.Ended || win.Job.Saves != 1 {
					t.Fatalf("the attempt is there: %v; %+v, want it to run with one save", ok, win.Job)
				}
				var epochs []int
				for _, sample := range win.Samples {
					if sample.Mark != nil {
						epochs = append(epochs, sample.Mark.Epoch)
					}
				}
				if diff := cmp.Diff([]int{1}, epochs); diff != "" {
					t.Errorf("epochs of the new start (-want +got):\n%s", diff)
				}
				wait(time.Second)
				if now := charged(store)[key].Total(); now <= first || first == 0 {
					t.Errorf("%v J before the restart and %v after it", first, now)
				}
				if all := store.Jobs(func(api.Job) bool { return true }); len(all) != 1 {
					t.Errorf("attempts %+v, want one", all)
				}
			})
		})
	}
}

var _ sampler.Finder = (*world)(nil)
