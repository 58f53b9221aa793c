package slurm_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/drivertest"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/test/slurmcluster"
)

// array starts an array of such jobs and returns the ids of its tasks.
func (b *bench) array(t *testing.T, be drivertest.Behaviour, set string, n int) []driver.JobID {
	t.Helper()
	spec := b.job(t, be)
	spec.Source = []byte(strings.Replace(string(spec.Source), "#SBATCH", "#SBATCH --array="+set+"\n#SBATCH", 1))
	job, err := b.d.Start(t.Context(), "request", spec)
	if err != nil {
		t.Fatal(err)
	}
	number, first, ok := strings.Cut(string(job.ID), "_")
	if again, err := b.d.Start(t.Context(), "request", spec); !ok || first != "1" || err != nil || again.ID != job.ID {
		t.Fatalf("Start returned %s and then %s (%v), want task 1 twice", job.ID, again.ID, err)
	}
	var ids []driver.JobID
	for i := range n {
		ids = append(ids, driver.JobID(fmt.Sprintf("%s_%d", number, i+1)))
	}
	return ids
}

func (b *bench) change(t *testing.T, id driver.JobID, c driver.Change) driver.Intent {
	t.Helper()
	in := b.intent(b.get(t, id), c)
	in.ID = "intent of " + string(id)
	if err := b.d.Check(t.Context(), in); err != nil && !errors.Is(err, driver.ErrNoRoom) { // its other tasks wait
		t.Fatalf("Check of %s: %v", id, err)
	}
	if step := b.drive(t, in, driver.StepStarted); step.Kind != driver.StepStarted {
		t.Fatalf("%s: step %+v, want %s", id, step, driver.StepStarted)
	}
	return in
}

func tasksAreJobs(t *testing.T, c *cluster) {
	b := newBench(t, c, func(cfg *slurm.Config) { cfg.Parse = detect.For("slurm") })
	be := saver(many)
	be.ShowEnv = "RATE"
	ids := b.array(t, be, "1-4%2", 4)
	b.says(t, ids[0], "epoch 2/")
	b.says(t, ids[1], "epoch 2/")
	if jobs, err := b.d.List(t.Context()); err != nil || len(jobs) != 4 || jobs[3].ID != ids[3] {
		t.Errorf("%d jobs (%v), want four tasks", len(jobs), err)
	}
	for _, id := range ids {
		job := b.get(t, id)
		if pending := id == ids[2] || id == ids[3]; job.ID != id || job.Request != "request" || (job.State == driver.Pending) != pending || (job.Alias == "") != pending {
			t.Errorf("task %s is %s with alias %q of request %q", id, job.State, job.Alias, job.Request)
		}
	}
	if out, err := b.d.Outlook(t.Context(), ids[0]); err != nil || out.Wait != nil {
		t.Errorf("the first task would wait %v (%v), want no one to know when it is its turn again", out.Wait, err)
	}
	tuned := driver.Change{Cores: 2, Env: map[string]string{"RATE": "tuned"}}
	b.change(t, ids[2], tuned)
	b.change(t, ids[3], driver.Change{Cores: 3})
	b.change(t, ids[0], tuned)
	b.change(t, ids[1], driver.Change{Cores: 3})
	b.hurry(t)
	for i, id := range ids {
		job := b.ended(t, id)
		attempts := 2 - i/2
		if job.State != driver.Succeeded || len(job.Attempts) != attempts || job.Attempts[attempts-1].Intent != "intent of "+string(id) {
			t.Errorf("task %s is %s with %+v, want %s after %d, the last as intended", id, job.State, job.Attempts, driver.Succeeded, attempts)
		}
		text := b.output(t, id)
		if n := strings.Count(text, fmt.Sprintf("epoch %d/", many)); n != 1 {
			t.Errorf("task %s ran to its end %d times, want once:\n%s", id, n, text)
		}
		if env := strings.LastIndex(text, "env RATE="); strings.HasPrefix(text[env:], "env RATE=tuned") != (i%2 == 0) {
			t.Errorf("task %s: %.20s", id, text[env:])
		}
		cores := mustRun(t, b.c, slurmcluster.Alpha, "squeue", "-h", "-r", "-t", "all", "-j", string(id), "-O", "NumCPUs:|")
		if want := fmt.Sprintf("%d|", 2+i%2); cores != want {
			t.Errorf("task %s has %s CPUs, want %s", id, cores, want)
		}
	}
	jobs, err := b.d.List(t.Context())
	if err != nil || len(jobs) != 4 {
		t.Errorf("%d jobs (%v), want 4", len(jobs), err)
	}
}

func arrayIsWaitedFor(t *testing.T, c *cluster) {
	b := newBench(t, c, func(cfg *slurm.Config) { cfg.Parse = detect.For("slurm") })
	gate := filepath.Join(b.dir, "gate")
	const script = `until [ -e gate ]; do sleep 0.1; done; exit $SLURM_ARRAY_TASK_ID`
	type result struct {
		code int
		text string
	}
	done := make(chan result, 1)
	go func() {
		out, err := b.c.Run(t.Context(), slurmcluster.Alpha, "sbatch", "--wait", "--parsable", "-p", b.partition, "--mem=10", "--chdir="+b.dir,
			"--array=1-3%1", "--wrap", script)
		r := result{text: out}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			r.code = exit.ExitCode()
		}
		done <- r
	}()
	var array string
	await(t, "the array", func() bool {
		array = mustRun(t, b.c, slurmcluster.Alpha, "squeue", "-h", "-t", "running", "-p", b.partition, "-o", "%F")
		return array != ""
	})
	after := driver.JobID(mustRun(t, b.c, slurmcluster.Alpha, "sbatch", "--parsable", "-p", b.partition, "-d", "afterany:"+array,
		"--mem=10", "-o", filepath.Join(b.dir, "after"), "--wrap", "echo done"))
	for _, task := range []string{"_2", "_3"} {
		b.change(t, driver.JobID(array+task), driver.Change{Cores: 2})
	}
	mustRun(t, b.c, slurmcluster.Alpha, "touch", gate)
	var last time.Time
	for i := range 3 {
		id := driver.JobID(fmt.Sprintf("%s_%d", array, i+1))
		got := b.ended(t, id)
		if got.State != driver.Failed || got.ExitCode != i+1 {
			t.Errorf("task %s is %s with %d, want %s with %d", id, got.State, got.ExitCode, driver.Failed, i+1)
		}
		last = got.Ended
	}
	got := b.ended(t, after)
	if got.State != driver.Succeeded {
		t.Errorf("the dependant is %s (%s), want %s", got.State, got.Detail, driver.Succeeded)
	}
	if len(got.Attempts) != 1 || got.Attempts[0].Started.Before(last) {
		t.Errorf("the dependant has attempts %+v; want one that began after %v, when the last task ended", got.Attempts, last)
	}
	if r := <-done; r.code != 3 {
		t.Errorf("sbatch --wait returned %d (%s), want the highest status 3", r.code, r.text)
	}
}

func waitingTaskStops(t *testing.T, c *cluster) {
	b := newBench(t, c, func(cfg *slurm.Config) { cfg.Parse = detect.For("slurm") })
	ids := b.array(t, saver(many), "1-3%1", 3)
	b.says(t, ids[0], "epoch 2/")
	if err := b.d.Stop(t.Context(), ids[1]); err != nil {
		t.Fatal(err)
	}
	if got := b.get(t, ids[1]); got.State != driver.Cancelled || len(got.Attempts) != 0 {
		t.Errorf("the task is %s with %+v, want %s before it began", got.State, got.Attempts, driver.Cancelled)
	}
	b.hurry(t)
	for _, id := range []driver.JobID{ids[0], ids[2]} {
		if got := b.ended(t, id); got.State != driver.Succeeded {
			t.Errorf("task %s is %s (%s), want %s", id, got.State, got.Detail, driver.Succeeded)
		}
	}
	array, _, _ := strings.Cut(string(ids[0]), "_")
	if _, err := b.d.Get(t.Context(), driver.JobID(array)); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("the array as a job: %v, want %v", err, driver.ErrNotFound)
	}
	if err := b.d.Stop(t.Context(), driver.JobID(array+"_99")); !errors.Is(err, driver.ErrNotFound) {
		t.Errorf("a task that there is not: %v, want %v", err, driver.ErrNotFound)
	}
}

// tasksForASite: through the broker one task is moved while it runs, two get another size
// and settings while they wait, and one is left alone.
func tasksForASite(t *testing.T, c *cluster) {
	b := newBench(t, c, func(cfg *slurm.Config) { cfg.Parse = detect.For("slurm") })
	d := b.site(t).Driver
	be := saver(many)
	be.ShowEnv = "RATE"
	spec := b.job(t, be)
	spec.Source = []byte(strings.NewReplacer("#SBATCH --job", "#SBATCH --array=1-4%1\n#SBATCH --job", "values=owner,tuned", "values=owner,two,three").Replace(string(spec.Source)))
	job, err := d.Start(t.Context(), "request", spec)
	if err != nil {
		t.Fatal(err)
	}
	array := arrayOf(job.ID)
	b.says(t, job.ID, "epoch 2/")
	change := func(task, rate string) {
		t.Helper()
		job, err := d.Get(t.Context(), driver.JobID(array+task))
		if err != nil {
			t.Fatal(err)
		}
		in := b.intent(job, driver.Change{Cores: 2, Env: map[string]string{"RATE": rate}})
		in.ID = "intent of " + string(job.ID)
		if err := d.Check(t.Context(), in); err != nil && !errors.Is(err, driver.ErrNoRoom) {
			t.Fatalf("Check of %s: %v", job.ID, err)
		}
		await(t, "the change of "+string(job.ID), func() bool {
			step, err := d.Advance(t.Context(), in)
			if errors.Is(err, driver.ErrNoRoom) { // its other tasks wait
				return false
			}
			if err != nil || step.Kind.Done() && step.Kind != driver.StepStarted {
				t.Fatalf("%s: %+v, %v", job.ID, step, err)
			}
			return step.Kind == driver.StepStarted
		})
	}
	change("_2", "two")
	change("_3", "three")
	change("_1", "three")
	b.hurry(t)
	want := map[string]struct {
		rate, cores string
		attempts    int
	}{"_1": {"three", "2", 2}, "_2": {"two", "2", 1}, "_3": {"three", "2", 1}, "_4": {"owner", "1", 1}}
	for task, want := range want {
		id := driver.JobID(array + task)
		var job driver.Job
		await(t, "the end of "+string(id), func() bool {
			if job, err = d.Get(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			return job.State.Ended()
		})
		if job.State != driver.Succeeded || len(job.Attempts) != want.attempts || job.Owner != slurmcluster.Alpha {
			t.Errorf("task %s of %s is %s (%s) after %+v, want %s after %d attempts", id, job.Owner, job.State, job.Detail, job.Attempts, driver.Succeeded, want.attempts)
		}
		text := b.output(t, id)
		if n := strings.Count(text, fmt.Sprintf("epoch %d/", many)); n != 1 {
			t.Errorf("task %s ran to its end %d times, want once:\n%s", id, n, text)
		}
		if env := strings.LastIndex(text, "env RATE="); env < 0 || !strings.HasPrefix(text[env:], "env RATE="+want.rate+"\n") && want.rate != "owner" {
			t.Errorf("task %s has not the rate %s:\n%s", id, want.rate, text)
		}
		if cores := mustRun(t, b.c, slurmcluster.Alpha, "squeue", "-h", "-r", "-t", "all", "-j", string(id), "-O", "NumCPUs:|"); cores != want.cores+"|" {
			t.Errorf("task %s has %s CPUs, want %s", id, cores, want.cores)
		}
	}
}

// arrayOf is the array of a task.
func arrayOf(task driver.JobID) string {
	array, _, _ := strings.Cut(string(task), "_")
	return array
}
