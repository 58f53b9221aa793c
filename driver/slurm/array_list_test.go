package slurm_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
)

func TestAWatchAndAListHaveEachTask(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	events, err := r.d.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var met []driver.JobID
	for range ids {
		met = append(met, (<-events).Job)
	}
	slices.Sort(met)
	if !slices.Equal(met, ids) {
		t.Errorf("events of %v, want of %v", met, ids)
	}
	r.f.run(ids[1])
	for (<-events).Job != ids[1] {
	}
	jobs, err := r.d.List(t.Context())
	if err != nil || len(jobs) != len(ids) {
		t.Fatalf("%d jobs (%v), want %d", len(jobs), err, len(ids))
	}
	for i, job := range jobs {
		if running := job.State == driver.Running; job.ID != ids[i] || job.Request != "request" || running != (i == 1) || (job.Alias != "") != running {
			t.Errorf("task %s is %s with alias %q of request %q", job.ID, job.State, job.Alias, job.Request)
		}
		if got := r.job(t, job.ID); got.Request != "request" || got.Alias != job.Alias {
			t.Errorf("task %s is %+v", job.ID, got)
		}
	}
}

func TestAnArrayIsForgottenWithItsLastTask(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	kept := func() int {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(r.cfg.Dir, "*", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(slices.DeleteFunc(files, func(f string) bool { return strings.Contains(f, "slurm-env") }))
	}
	r.cfg.Keep = time.Nanosecond
	for _, id := range ids {
		r.f.run(id)
		r.job(t, id)
	}
	r.reopen(t)
	if n := kept(); n != 5 { // the request, the array, three tasks
		t.Errorf("%d files while its tasks run, want 5", n)
	}
	for _, id := range ids {
		r.f.with(id, func(j *fakeJob) { r.f.end(j, "COMPLETED", 0) })
		r.job(t, id)
	}
	r.forgetAll()
	time.Sleep(1100 * time.Millisecond) // Slurm's seconds
	r.reopen(t)
	if n := kept(); n != 0 {
		t.Errorf("%d files are left of an array that ended, want none", n)
	}
}

func TestATaskThatIsStoppedBeforeItHasANumberIsCancelled(t *testing.T) {
	t.Parallel()
	r, ids := arrayRig(t)
	if err := r.d.Stop(t.Context(), ids[1]); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := r.job(t, ids[1]); got.State != driver.Cancelled || len(got.Attempts) != 0 {
			t.Errorf("the task is %s with %+v, want %s before it began", got.State, got.Attempts, driver.Cancelled)
		}
	}
	if got := r.job(t, ids[2]); got.State != driver.Pending {
		t.Errorf("the next task is %s, want %s", got.State, driver.Pending)
	}
}
