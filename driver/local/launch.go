package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/supervise"
)

// maxFailures is how many supervisors in a row may die, or fail to be forked,
// before the attempt counts as one that cannot be started. Between them the driver
// waits, longer each time: a full machine may recover.
const (
	maxFailures  = 4
	failureDelay = 500 * time.Millisecond
	maxDoublings = 6 // of the delay
)

// failure counts the supervisors of a job that died before they started it.
type failure struct {
	count  int
	delays int       // launches whose files could not be written; these end no job
	again  time.Time // when the next may be tried
	launch int       // the last one that retry counted
}

// failed notes one more.
func (d *Driver) failed(id driver.JobID, now time.Time) {
	f := d.failures[id]
	f.again = now.Add(failureDelay << min(f.count, maxDoublings))
	f.count++
	d.failures[id] = f
}

// delayed notes that a launch could not be prepared, as on a full disk, which is no
// fault of the job: it waits, longer each time.
func (d *Driver) delayed(id driver.JobID, now time.Time) {
	f := d.failures[id]
	f.again = now.Add(failureDelay << min(f.delays, maxDoublings))
	f.delays++
	d.failures[id] = f
}

// begin makes the queued attempt the running one, durably, and launches it.
func (d *Driver) begin(r *record) error {
	c := r.clone()
	now := time.Now()
	if c.Job.Attempt == len(c.Job.Attempts) { // only before the very first
		c.Job.Attempt++
	}
	c.Job.State, c.Job.Detail, c.Job.Change, c.Job.ExitCode = driver.Running, "", c.Next.Change, -1
	c.Job.Attempts = append(c.Job.Attempts, driver.Attempt{
		Number: c.Job.Attempt, Started: now, ExitCode: -1,
		Change: c.Next.Change.Clone(), Cause: c.Next.Cause, Intent: c.Next.Intent,
	})
	if c.Job.Started.IsZero() {
		c.Job.Started = now
	}
	c.CPUs = d.allot(c.want(c.Job.Change).Cores)
	// A change that was durable and whose job began before its next Advance has
	// been applied.
	c.Launch, c.Moving, c.SavedExits, c.NotBefore = 1, nil, nil, time.Time{}
	if err := d.commit(c, "running"); err != nil {
		return err
	}
	return d.launch(c)
}

// allot picks CPUs that no running job has.
func (d *Driver) allot(n int) []int {
	taken := map[int]bool{}
	for _, r := range d.jobs {
		if r.Job.State == driver.Running {
			for _, c := range r.CPUs {
				taken[c] = true
			}
		}
	}
	var out []int
	for _, c := range d.cpus {
		if !taken[c] && len(out) < n {
			out = append(out, c)
		}
	}
	return out
}

// launch writes the plan of the present launch and forks its supervisor.
func (d *Driver) launch(r *record) error {
	dir := d.store.launch(r)
	if err := d.prepare(r, dir); err != nil {
		d.delayed(r.Job.ID, time.Now())
		return err
	}
	d.cfg.AfterStep("planned")
	pid, err := d.fork(dir)
	if err != nil {
		d.failed(r.Job.ID, time.Now())
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	d.forked[r.Job.ID] = pid
	d.cfg.AfterStep("forked")
	return nil
}

// prepare writes what a launch needs.
func (d *Driver) prepare(r *record, dir string) error {
	if err := durable.MkdirAll(filepath.Dir(dir), 0o711); err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := r.writeSettings(d.store); err != nil {
		return err
	}
	return durable.WriteJSON(filepath.Join(dir, supervise.PlanFile), d.plan(r), 0o600)
}

// fork starts the supervisor in a session of its own, so that nothing that ends
// this process reaches it.
func (d *Driver) fork(dir string) (pid int, err error) {
	log, err := os.OpenFile(filepath.Join(dir, "supervisor.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	argv := append(slices.Clone(d.cfg.Supervisor), dir)
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // it outlives every context of this process
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	pid = cmd.Process.Pid
	// It is waited for by number, without blocking; see bury.
	return pid, cmd.Process.Release()
}

// plan says what the attempt runs.
func (d *Driver) plan(r *record) supervise.Plan {
	env := environment(r, d.env, d.store)
	argv := r.argv(env)
	if args := r.Job.Change.Args; len(args) > 0 {
		argv = append(argv[:1:1], driver.WithFlags(argv[1:], args)...)
	}
	if len(argv) == 0 {
		argv = append(slices.Clone(r.File.Interpreter), d.store.script(r.Job.ID))
	}
	p := supervise.Plan{
		Job: string(r.Job.ID), Attempt: r.Job.Attempt, Self: d.cfg.Supervisor,
		Argv: argv, Dir: r.workDir(env), Env: listed(env), User: r.User, Notes: r.notes(),
		Output: r.Output, Own: r.OwnOut, Truncate: r.Job.Attempt == 1,
		Tree: d.tree, Leaf: fmt.Sprintf("%s.%d", r.Job.ID, r.Job.Attempt),
		CPUs: r.CPUs, MemoryBytes: r.want(r.Job.Change).Memory, TimeLimit: r.limit(r.Job.Change),
	}
	if r.Progress.Pattern != "" {
		p.Listener, p.ListenerEnv = d.cfg.Listener, d.cfg.ListenerEnv
		p.Pattern, p.File, p.Total = r.Progress.Pattern, r.Progress.File, r.Progress.Total
	}
	return p
}

// notes are the lines at the start of the attempt's output.
func (r *record) notes() []string {
	if r.Next.Note == "" {
		return nil
	}
	return []string{r.Next.Note}
}

// retry launches an attempt again whose supervisor began but never let the job go:
// process.json, which is durable before that, is missing. The machine may have been
// full. After maxFailures in a row the job is not started, for the reason given.
func (d *Driver) retry(r *record, why string, code int) (*record, error) {
	id, now := r.Job.ID, time.Now()
	if d.failures[id].launch != r.Launch {
		if pid, ours := d.forked[id]; ours {
			d.buried = append(d.buried, pid)
			delete(d.forked, id)
		}
		d.failed(id, now)
		f := d.failures[id]
		f.launch = r.Launch
		d.failures[id] = f
		d.cfg.Logger.Warn("attempt did not start", "job", string(id), "attempt", r.Job.Attempt, "launch", r.Launch, "reason", why)
	}
	var err error
	switch f := d.failures[id]; {
	case r.Cancel:
		err = d.relaunch(r) // which ends it
	case f.count >= maxFailures:
		c := r.clone()
		c.endAttempt(now, code)
		d.close(c, driver.NotStarted, why, now)
		err = d.commit(c, "ended")
	case !now.Before(f.again):
		err = d.relaunch(r)
	}
	return d.jobs[id], err
}

// relaunch starts an attempt again of which it is proven that it never started.
func (d *Driver) relaunch(r *record) error {
	c := r.clone()
	if r.Cancel {
		c.endAttempt(time.Now(), -1)
		d.close(c, driver.Cancelled, "cancelled before it ran", time.Now())
		return d.commit(c, "cancelled")
	}
	if d.failures[r.Job.ID].count >= maxFailures {
		c.endAttempt(time.Now(), -1)
		d.close(c, driver.NotStarted, "its supervisor does not start; see "+
			filepath.Join(d.store.launch(r), "supervisor.log"), time.Now())
		return d.commit(c, "ended")
	}
	c.Launch++
	if err := d.commit(c, "relaunch"); err != nil {
		return err
	}
	return d.launch(c)
}
