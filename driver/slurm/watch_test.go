package slurm_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

// priced is a fake Slurm whose squeue costs CPU, and which says what number comes next.
type priced struct {
	*fake
	squeue time.Duration
}

func (p *priced) Run(ctx context.Context, c command.Call) (command.Output, error) {
	if line := c.String(); strings.HasSuffix(line, "show config") {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.calls = append(p.calls, line)
		return command.Output{Stdout: fmt.Appendf(nil, "%sNEXT_JOB_ID = %d\n", p.conf, len(p.jobs)+1)}, nil
	}
	out, err := p.fake.Run(ctx, c)
	if c.Name == "squeue" {
		out.CPU = p.squeue
	}
	return out, err
}

// arrive is a job that appears in the queue, as if its user had submitted it.
func (f *fake) arrive(admin string) driver.JobID { return f.arrivals(1, admin) }

// arrivals are several at once; it returns the last.
func (f *fake) arrivals(n int, admin string) driver.JobID {
	f.mu.Lock()
	defer f.mu.Unlock()
	for range n {
		id := len(f.jobs) + 1
		f.jobs[id] = &fakeJob{
			id: id, state: "PENDING", name: "j", admin: admin, script: []byte("#!/bin/sh\ntrue\n"), cores: 1, mem: 100,
			submitted: time.Now().UTC().Truncate(time.Second),
		}
	}
	return driver.JobID(fmt.Sprint(len(f.jobs)))
}

const mark = "pitchpipe:1:-"

// watched is a driver on a priced Slurm, and a watch of it.
type watched struct {
	*rig
	p      *priced
	events <-chan driver.Event
	end    func()
}

func newWatched(t *testing.T, squeue time.Duration, jobs int, change func(*slurm.Config)) watched {
	t.Helper()
	w := watched{p: &priced{squeue: squeue}}
	w.rig = newRig(t, func(c *slurm.Config) {
		w.p.fake = c.Commands.(*fake) //nolint:forcetypeassert // newRig makes one
		c.Commands = w.p
		if change != nil {
			change(c)
		}
	})
	for range jobs {
		w.p.arrive(mark)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	var err error
	if w.events, err = w.d.Watch(ctx); err != nil {
		t.Fatal(err)
	}
	w.end = func() {
		cancel()
		for range w.events {
		}
	}
	t.Cleanup(w.end)
	for range jobs {
		w.event(t)
	}
	return w
}

func (w watched) event(t *testing.T) driver.JobID {
	t.Helper()
	e, ok := <-w.events
	if !ok {
		t.Fatal("the watch ended")
	}
	return e.Job
}

// until waits for an event of a job.
func (w watched) until(t *testing.T, id driver.JobID) {
	t.Helper()
	for w.event(t) != id {
	}
}

func TestAJobThatIsWatchedIsReadOnceUntilItChanges(t *testing.T) {
	t.Parallel()
	w := newWatched(t, 0, 3, nil)
	const show = "scontrol -o show job 2"
	read := w.f.count(show)
	for range 5 {
		if job := w.job(t, "2"); job.State != driver.Pending || job.Fingerprint == "" {
			t.Fatalf("%+v", job)
		}
	}
	if n := w.f.count(show) - read; n != 0 {
		t.Errorf("read %d times more by Get", n)
	}
	if n := w.f.count("scontrol write batch_script 2 "); n != 1 {
		t.Errorf("its script was read %d times, want once", n)
	}
	w.f.run("2")
	w.until(t, "2")
	if job := w.job(t, "2"); job.State != driver.Running {
		t.Errorf("after the event it is %s", job.State)
	}
	w.end()
	w.f.with("2", func(j *fakeJob) { w.f.end(j, "COMPLETED", 0) })
	if job := w.job(t, "2"); job.State != driver.Succeeded {
		t.Errorf("without a watch it is %s, want what it is now", job.State)
	}
}

func TestWhatIsDoneHereIsSeenByTheNextGet(t *testing.T) {
	t.Parallel()
	// One look is so dear that there is no other in this test.
	w := newWatched(t, time.Hour, 2, nil)
	job := w.job(t, "1")
	step, err := w.d.Advance(t.Context(), driver.Intent{
		ID: "i", Job: "1", Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: driver.Change{Cores: 2},
	})
	if err != nil || step.Kind != driver.StepChanged {
		t.Fatalf("%+v (%v)", step, err)
	}
	if job := w.job(t, "1"); job.Change.Cores != 2 {
		t.Errorf("after the change: %+v", job.Change)
	}
	if job := w.job(t, "2"); job.State != driver.Pending {
		t.Fatalf("%+v", job)
	}
	if err := w.d.Stop(t.Context(), "2"); err != nil {
		t.Fatal(err)
	}
	if job := w.job(t, "2"); job.State != driver.Cancelled {
		t.Errorf("after Stop it is %s", job.State)
	}
	if n := w.f.count("squeue"); n != 2 {
		t.Errorf("%d looks at the queue, want one, and one for those that depend on the changed job", n)
	}
}

func TestAJobWithoutTheMarkIsReadOnceAndNeverSpokenOf(t *testing.T) {
	t.Parallel()
	w := newWatched(t, 0, 1, func(c *slurm.Config) { c.Marked = true })
	plain := w.f.arrive("a comment of the site")
	marked := w.f.arrive("a comment of the site " + mark)
	w.until(t, marked)
	for range 3 { // the plain one changes as often as it likes
		w.f.with(plain, func(j *fakeJob) { j.cores++ })
		w.f.with(marked, func(j *fakeJob) { j.cores++ })
		if id := w.event(t); id != marked {
			t.Fatalf("an event of job %s, want of %s", id, marked)
		}
	}
	if n := w.f.count("scontrol -o show job " + string(plain)); n != 1 {
		t.Errorf("read %d times, want once", n)
	}
	jobs, err := w.d.List(t.Context())
	if err != nil || len(jobs) != 2 || jobs[0].ID != "1" || jobs[1].ID != marked {
		t.Errorf("listed %v (%v), want 1 and %s", jobs, err, marked)
	}
}

func TestWhereALookIsDearNewJobsAreAskedForByTheirNumbers(t *testing.T) {
	t.Parallel()
	w := newWatched(t, time.Hour, 30, func(c *slurm.Config) { c.Marked = true })
	for range 3 {
		w.f.arrive("")
		if id, met := w.f.arrive(mark), w.event(t); met != id {
			t.Fatalf("an event of job %s, want of %s", met, id)
		} else if job := w.job(t, id); job.ID != id || job.State != driver.Pending {
			t.Fatalf("%+v", job)
		}
	}
	jobs, err := w.d.List(t.Context())
	if err != nil || len(jobs) != 33 {
		t.Errorf("%d jobs (%v), want 33", len(jobs), err)
	}
	if n := w.f.count("squeue"); n != 1 {
		t.Errorf("%d looks at the queue, want 1", n)
	}
}

func TestManyNewJobsAreFoundByTheNextLook(t *testing.T) {
	t.Parallel()
	w := newWatched(t, 150*time.Microsecond, 1, nil)
	w.until(t, w.f.arrivals(100, mark))
	if n := w.f.count("squeue"); n < 2 {
		t.Errorf("%d looks at the queue, want another", n)
	}
	if n := w.f.count("scontrol -o show job "); n > 25 {
		t.Errorf("%d jobs were read one by one, want all at once", n)
	}
}

func TestAListWhileAWatchRunsAsksSlurmNothing(t *testing.T) {
	t.Parallel()
	w := newWatched(t, time.Hour, 5, nil)
	for id := 1; id <= 5; id++ {
		w.job(t, driver.JobID(fmt.Sprint(id)))
	}
	before := w.f.count("")
	jobs, err := w.d.List(t.Context())
	if err != nil || len(jobs) != 5 {
		t.Fatalf("%d jobs (%v), want 5", len(jobs), err)
	}
	for i, j := range jobs {
		if want := driver.JobID(fmt.Sprint(i + 1)); j.ID != want || string(j.Source) == "" {
			t.Errorf("job %d is %s with %d bytes of script, want %s", i, j.ID, len(j.Source), want)
		}
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	for _, c := range w.p.calls[before:] {
		if !strings.HasSuffix(c, "show config") {
			t.Errorf("asked %s", c)
		}
	}
}

// Waiting tasks of an array share a record.
func TestAJobThatCannotBeReadIsReadOnce(t *testing.T) {
	t.Parallel()
	w := newWatched(t, 0, 1, nil)
	w.f.mu.Lock()
	for task := range 3 {
		w.f.jobs[2+task] = &fakeJob{id: 2 + task, array: 4, task: task, state: "PENDING", admin: mark, cores: 1, mem: 100, more: "Partition=main"}
	}
	w.f.mu.Unlock()
	go func() {
		for range w.events {
		}
	}()
	for looks := w.f.count("squeue") + 5; w.f.count("squeue") < looks; {
		time.Sleep(time.Millisecond)
	}
	if n := w.f.count("scontrol -o show job 4"); n == 0 || n > 2 { // new jobs are read by their numbers, and at the next look
		t.Errorf("read %d times in five looks, want once or twice", n)
	}
}
