package broker_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/slurmctl"
)

// taskRig is a rig with task 2 of array 5, which waits and has no own number, and
// task 3, which runs.
func taskRig(t *testing.T, change func(*broker.Config)) *rig {
	t.Helper()
	r := newRig(t, change)
	r.f.mu.Lock()
	defer r.f.mu.Unlock()
	second := r.f.job
	second.number, second.array, second.task = "8", "5", "3"
	r.f.second = &second
	r.f.job.number, r.f.job.array, r.f.job.task = "5", "5", "2"
	r.f.job.state, r.f.job.reason, r.f.job.eligible = "PENDING", "JobArrayTaskLimit", time.Time{}
	return r
}

func TestATaskOfAnArrayIsMovedByItsName(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	r.f.with(func(j *fakeJob) { j.state, j.number = "RUNNING", "7" })
	u := size(2, 0, 0)
	u.Start = start(time.Minute).Start
	err := errors.Join(
		r.client.Signal(t.Context(), "5_2", "SIGUSR1"), r.client.Do(t.Context(), slurmctl.Requeue, "5_2"),
		r.client.May(t.Context(), "5_3", size(1, 0, 0)), r.client.Update(t.Context(), "5_2", u),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"signal 5_2 SIGUSR1", "requeue 5_2",
		"update 5_2 NumCPUs=2 CpusPerTask=2 MinCPUsNode=2 StartTime=now+60",
	}
	if did := r.f.did(); !slices.Equal(did, want) {
		t.Errorf("done: %q, want %q", did, want)
	}
	for _, e := range r.entries(t) {
		if e.Job != "5_2" || !e.Allowed {
			t.Errorf("the audit has %+v, want the task by its name", e)
		}
	}
	r.f.with(func(j *fakeJob) { j.state, j.reason, j.exit, j.restarts = "SPECIAL_EXIT", "JobHeldUser", 85, 1 })
	if err := r.client.Do(t.Context(), slurmctl.Release, "5_2"); err != nil {
		t.Error(err)
	}
	if script, err := r.client.Script(t.Context(), "5_2"); err != nil || len(script) == 0 {
		t.Errorf("its script is %q (%v)", script, err)
	}
}

func TestEachTaskHasACeilingOfItsOwn(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	r.f.mu.Lock()
	r.f.second.state = "PENDING"
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "5_2", size(2, 0, 0)); err != nil {
		t.Fatal(err)
	}
	r.restart(t)
	r.f.with(func(j *fakeJob) { j.number = "9" }) // which Slurm gave it
	if err := r.client.Update(t.Context(), "5_2", size(5, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than the 4") {
		t.Errorf("more than its owner asked for: %v, want %v", err, driver.ErrDenied)
	}
	if err := r.client.Update(t.Context(), "5_2", size(4, 0, 0)); err != nil {
		t.Errorf("back to what its owner asked for: %v", err)
	}
	r.f.mu.Lock()
	r.f.second.cores = 2 // so its owner says
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "5_3", size(4, 0, 0)); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "more than the 2") {
		t.Errorf("as many as another task has: %v, want %v", err, driver.ErrDenied)
	}
}

func TestEachWaitingTaskWithASizeOfOursCountsAsUsed(t *testing.T) {
	t.Parallel()
	r := taskRig(t, func(c *broker.Config) { c.Above = []string{"main"} })
	r.f.mu.Lock()
	r.f.config, r.f.assoc = "AccountingStorageEnforce = associations,limits,qos\n", strings.ReplaceAll(limited, "cpu=6(3)", "cpu=6(0)")
	r.f.second.state, r.f.second.number = "PENDING", "5" // neither has its own number
	r.f.mu.Unlock()
	if err := r.client.Update(t.Context(), "5_3", size(5, 0, 0)); err != nil {
		t.Fatal(err)
	}
	err := r.client.Update(t.Context(), "5_2", size(3, 0, 0))
	if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "GrpTRES=cpu 6, of which other jobs use 5, and the job would add 3") {
		t.Errorf("%v, want that the other task counts", err)
	}
	if err := r.client.Update(t.Context(), "5_3", size(6, 0, 0)); err != nil {
		t.Errorf("the task itself does not count beside itself: %v", err)
	}
}

func TestAWaitingTaskMayBeMadeToWaitUntilItsSettingsAreThere(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	wait := func(in time.Duration) error { return r.client.Update(t.Context(), "5_2", start(in)) }
	denied := func(what string, err error, words string) {
		t.Helper()
		if !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %v with the words %q", what, err, driver.ErrDenied, words)
		}
	}
	denied("a start now of what we did not make wait", wait(0), "only its owner decides")
	r.f.with(func(j *fakeJob) { j.eligible = time.Now().Add(time.Hour) })
	denied("before the begin that its owner gave it", wait(time.Minute), "its owner has it begin at")
	r.f.with(func(j *fakeJob) { j.eligible, j.number = time.Time{}, "9" })
	denied("a task that has a number already", wait(time.Minute), "only its owner decides")
	r.f.with(func(j *fakeJob) { j.number = "5" })
	if err := wait(time.Minute); err != nil {
		t.Fatal(err)
	}
	r.f.with(func(j *fakeJob) { j.number, j.eligible = "9", time.Now().Add(time.Minute) })
	r.restart(t) // which knows of it
	if err := wait(2 * time.Minute); err != nil {
		t.Errorf("once more: %v", err)
	}
	denied("repeatedly", wait(broker.Ahead), "may wait for 10m0s in all")
	if err := wait(0); err != nil {
		t.Errorf("the end of the wait: %v", err)
	}
	r.f.with(func(j *fakeJob) { j.eligible = time.Now().Add(24 * time.Hour) })
	denied("a begin that its owner moved since", wait(0), "its owner has it begin at")
	want := []string{"update 5_2 StartTime=now+60", "update 5_2 StartTime=now+120", "update 5_2 StartTime=now"}
	if did := r.f.did(); !slices.Equal(did, want) {
		t.Errorf("done: %q, want %q", did, want)
	}
}

func TestATaskGetsItsNumberByTheWordOfItsOwner(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	yes, no := true, false
	if err := r.client.Update(t.Context(), "5_2", slurmctl.Update{Requeue: &no}); !errors.Is(err, driver.ErrDenied) || !strings.Contains(err.Error(), "only its owner decides") {
		t.Errorf("another word than his: %v, want %v", err, driver.ErrDenied)
	}
	if err := r.client.Update(t.Context(), "5_2", slurmctl.Update{Requeue: &yes}); err != nil {
		t.Errorf("his word: %v", err)
	}
	if err := r.client.May(t.Context(), "5_2", slurmctl.Update{Requeue: &yes}); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("asked beforehand: %v, want %v", err, driver.ErrInvalid)
	}
	if did := r.f.did(); !slices.Equal(did, []string{"update 5_2 Requeue=1"}) {
		t.Errorf("done: %q, want his word alone", did)
	}
}

func TestTheRecordOfATaskGoesWithTheTask(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	if err := r.client.Update(t.Context(), "5_2", size(2, 0, 0)); err != nil {
		t.Fatal(err)
	}
	records := func() []string {
		files, err := filepath.Glob(filepath.Join(r.cfg.Dir, "jobs", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for i := range files {
			files[i] = filepath.Base(files[i])
		}
		return files
	}
	r.restart(t)
	if got := records(); !slices.Equal(got, []string{"5_2.json"}) {
		t.Errorf("records %q, want the task's", got)
	}
	r.f.with(func(j *fakeJob) { j.gone = true })
	r.restart(t)
	for deadline := time.Now().Add(time.Minute); len(records()) > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("records %q of a task that slurmctld has forgotten", records())
		}
	}
}

func TestATaskThatJustBeginsIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	r := taskRig(t, nil)
	r.f.mu.Lock()
	r.f.begin = func(j *fakeJob) { j.number, j.state, j.reason = "9", "RUNNING", "None" }
	r.f.mu.Unlock()
	if err := r.client.Signal(t.Context(), "5_2", "SIGUSR1"); err != nil {
		t.Error(err)
	}
}
