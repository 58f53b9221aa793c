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

	"golang.org/x/sys/unix"

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

// failures are what went wrong in a row with the attempt of a job.
type failures struct {
	tries  int       // how often the driver waits by now
	again  time.Time // when it tries the next time
	launch int       // the last one whose failure was counted
	count  int       // supervisors that died before they started the job; others end no job
}

// later makes the next try wait.
func (d *Driver) later(id driver.JobID, now time.Time) failures {
	f := d.failures[id]
	f.again = now.Add(failureDelay << min(f.tries, maxDoublings))
	f.tries++
	d.failures[id] = f
	return f
}

// begin makes the queued attempt the running one, durably, and launches it.
func (d *Driver) begin(r *record) error {
	delete(d.failures, r.Job.ID)
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
	c.Launch, c.Moving, c.SavedExits, c.Job.NotBefore = 1, nil, nil, time.Time{}
	if err := d.commit(c, "running"); err != nil {
		return err
	}
	return d.launch(c)
}

// allot picks CPUs that no running job has.
func (d *Driver) allot(n int) []int {
	free := slices.Clone(d.cpus)
	for _, r := range d.jobs {
		if r.Job.State == driver.Running {
			free = slices.DeleteFunc(free, func(cpu int) bool { return slices.Contains(r.CPUs, cpu) })
		}
	}
	return free[:min(n, len(free))]
}

// launch writes the plan of the present launch and forks its supervisor. The job waits where the
// launch cannot be prepared, as on a full disk: that is not its fault.
func (d *Driver) launch(r *record) error {
	dir := d.store.launch(r)
	err := errors.Join(durable.MkdirAll(filepath.Dir(dir), 0o700), durable.MkdirAll(dir, 0o700))
	if err == nil {
		err = r.writeSettings(d.store)
	}
	if err == nil {
		err = durable.WriteJSON(filepath.Join(dir, supervise.PlanFile), d.plan(r), 0o600)
	}
	if err != nil {
		d.later(r.Job.ID, time.Now())
		return err
	}
	d.cfg.AfterStep("planned")
	pid, err := d.fork(dir)
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	d.children[pid] = dir
	d.cfg.AfterStep("forked")
	return nil
}

// fork starts the supervisor in its own session, so that nothing that ends this process reaches it.
func (d *Driver) fork(dir string) (pid int, err error) {
	log, err := os.OpenFile(filepath.Join(dir, logFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
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

const logFile = "supervisor.log" // of a launch

// bury waits for supervisors that were children of this process and ended.
func (d *Driver) bury() {
	for pid := range d.children {
		if got, err := unix.Wait4(pid, nil, unix.WNOHANG, nil); got == pid || errors.Is(err, unix.ECHILD) {
			delete(d.children, pid)
		}
	}
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
		Argv: argv, Dir: r.workDir(env), Env: driver.Environ(env), User: r.User,
		Output: r.Output, Own: r.OwnOut, Truncate: r.Job.Attempt == 1 && !r.File.Append,
		Tree: d.tree, Leaf: fmt.Sprintf("%s.%d", r.Job.ID, r.Job.Attempt),
		CPUs: r.CPUs, MemoryBytes: r.want(r.Job.Change).Memory, TimeLimit: r.limit(r.Job.Change),
	}
	if r.Next.Note != "" {
		p.Notes = []string{r.Next.Note}
	}
	if r.Progress.Pattern != "" {
		p.Listener, p.Pattern, p.File, p.Total = d.cfg.Listener, r.Progress.Pattern, r.Progress.File, r.Progress.Total
	}
	return p
}

// again launches an attempt again whose supervisor is proven never to have let the job go,
// and never to do so: process.json, which is durable before that, is missing. The machine may
// have been full. After maxFailures in a row the job is not started, for the reason given.
func (d *Driver) again(r *record, why string, code int) error {
	id, now := r.Job.ID, time.Now()
	f := d.failures[id]
	if dir := d.store.launch(r); f.launch != r.Launch && supervise.Has(dir, supervise.PlanFile) {
		f = d.later(id, now)
		f.launch, f.count = r.Launch, f.count+1
		d.failures[id] = f
		d.cfg.Logger.Warn("attempt did not start", "job", string(id), "attempt", r.Job.Attempt, "launch", r.Launch, "reason", why)
	}
	c := r.clone()
	switch {
	case r.Cancel:
		c.endAttempt(now, -1)
		d.close(c, driver.Cancelled, "cancelled before it ran", now)
		return d.commit(c, "cancelled")
	case f.count >= maxFailures:
		c.endAttempt(now, code)
		d.close(c, driver.NotStarted, why, now)
		return d.commit(c, "ended")
	case now.Before(f.again):
		return nil
	}
	c.Launch++
	if err := d.commit(c, "relaunch"); err != nil {
		return err
	}
	return d.launch(c)
}

// live reports whether the attempt that runs has a settings file: where the job's
// stanza names a live knob, and from the first live change on, whatever became of
// the change, so that a job that found a file once may rely on it.
func (r *record) live() bool {
	return r.File.Live || slices.ContainsFunc(r.Job.Attempts, func(a driver.Attempt) bool { return len(a.Change.Live) > 0 })
}

// writeSettings replaces the settings file before an attempt, so that the job
// finds it from its first moment on, and when it is adapted. Its revision is the attempt's number, and
// how often the job was adapted on top.
func (r *record) writeSettings(s store) error {
	if !r.live() {
		return nil
	}
	data, err := driver.EncodeSettings(r.Job.Attempt+r.Adapts, driver.Merge(r.Job.Change.Live, r.Adapted))
	if err != nil {
		return err
	}
	return r.give(s.settings(r.Job.ID), data, 0o400)
}
