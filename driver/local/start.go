package local

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/local/supervise"
)

// claim is what a request id holds once it is taken.
type claim struct {
	Request driver.RequestID `json:"request"`
	Number  int64            `json:"number"`
}

// Start creates a job. The request id is claimed before anything of the job
// exists; a Start that a crash interrupted after that is completed by its
// repetition, under the same number.
func (d *Driver) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	r, script, invalid := d.draft(ctx, id, spec) // without the lock: a directory of users may be slow
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return driver.Job{}, fmt.Errorf("start: %w", errClosed)
	}
	if id == "" {
		return driver.Job{}, fmt.Errorf("start: no request id: %w", driver.ErrInvalid)
	}
	// 1. What a repetition finds.
	path := d.store.claim(id)
	var have claim
	err := durable.ReadJSON(path, &have)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	if r, ok := d.jobs[d.jobID(have.Number)]; have.Number > 0 && ok {
		if r.Job.Fingerprint != driver.Fingerprint(spec.Source, spec.Variables) {
			return driver.Job{}, fmt.Errorf("start: the request id was used for another job file, %s (%s): %w", r.Job.Name, r.Job.ID, driver.ErrInvalid)
		}
		return r.Job.Clone(), nil
	}
	if _, err := os.Stat(d.store.recordFile(d.jobID(have.Number))); have.Number > 0 && !errors.Is(err, fs.ErrNotExist) {
		return driver.Job{}, fmt.Errorf("start: the record of job %s cannot be read: %w", d.jobID(have.Number), driver.ErrTransient)
	}
	// 2. Whether it can run at all, before anything is created.
	if invalid != nil {
		return driver.Job{}, fmt.Errorf("start: %w", invalid)
	}
	if n := d.pending(r.Job.Owner); n >= d.cfg.MaxPending {
		return driver.Job{}, fmt.Errorf("start: %d jobs of user %s wait already, which is the most: %w", n, r.Job.Owner, driver.ErrDenied)
	}
	// 3. The claim.
	if have.Number == 0 {
		have = claim{Request: id}
		if have.Number, err = d.store.number(); err == nil {
			d.cfg.AfterStep("numbered")
			err = durable.Claim(path, have)
		}
		if err != nil {
			return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
		}
		d.cfg.AfterStep("claimed")
	}
	// 4. The job.
	r.Number, r.Job.ID = have.Number, d.jobID(have.Number)
	r.setOutput(d.store)
	if err := d.makeJob(r, script); err != nil {
		return driver.Job{}, fmt.Errorf("start: job %s: %w: %w", r.Job.ID, driver.ErrTransient, err)
	}
	if err := d.commit(r, "created"); err != nil {
		return driver.Job{}, fmt.Errorf("start: %w", err)
	}
	d.nudge()
	return r.Job.Clone(), nil
}

// pending is how many jobs of a user wait to begin.
func (d *Driver) pending(owner string) (n int) {
	for _, r := range d.jobs {
		if r.Job.Owner == owner && r.Job.State == driver.Pending {
			n++
		}
	}
	return n
}

func (d *Driver) jobID(n int64) driver.JobID {
	return driver.JobID(fmt.Sprintf("%s-%d", d.cfg.Cluster, n))
}

// draft reads and judges what is to run.
func (d *Driver) draft(ctx context.Context, id driver.RequestID, spec driver.Spec) (*record, []byte, error) {
	job, err := detect.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	r := &record{
		Version: recordVersion,
		File: file{
			Format: job.Format, Argv: job.Argv, Env: job.Env, Meta: job.Meta, Interpreter: interpreter(job.Script),
			NoRequeue: job.NoRequeue, Output: job.Output, Append: strings.HasPrefix(job.OpenMode, "a"), Fixed: job.Fixed, Live: job.Live(),
		},
		Env: maps.Clone(spec.Env), Progress: spec.Progress,
		Next: next{Cause: driver.CauseSubmitted},
		Job: driver.Job{
			Request: id, Name: job.Name, Partition: job.Partition, Account: job.Account,
			State: driver.Pending, ExitCode: -1, NoRequeue: job.NoRequeue, Fingerprint: driver.Fingerprint(spec.Source, spec.Variables), Filename: spec.Filename,
			Source: slices.Clone(spec.Source), Variables: maps.Clone(spec.Variables), Submitted: time.Now(), NotBefore: spec.NotBefore, Node: d.node,
			Resources: driver.Resources{
				Cores: max(job.Cores, 1), MemoryBytes: job.MemoryBytes, TimeLimit: job.TimeLimit,
				Env: driver.Merge(job.Env, spec.Env), Args: job.Argv, Command: job.Command,
			},
		},
	}
	if err := r.runAs(ctx, spec.Owner); err != nil {
		return nil, nil, err
	}
	if err := d.Fits(r.want(driver.Change{})); err != nil {
		return nil, nil, err
	}
	var script []byte
	if len(job.Argv) == 0 {
		if len(r.File.Interpreter) == 0 || !bytes.HasPrefix(job.Script, []byte("#!")) {
			return nil, nil, fmt.Errorf("the script's first line names no interpreter (#!): %w", driver.ErrInvalid)
		}
		script = job.Script
	}
	r.Dir = job.Dir
	if !filepath.IsAbs(r.Dir) {
		r.Dir = filepath.Join(spec.Dir, r.Dir)
	}
	if r.Dir, err = filepath.Abs(r.Dir); err != nil {
		return nil, nil, fmt.Errorf("working directory: %w: %w", driver.ErrInvalid, err)
	}
	if err := d.interpolates(r, job.Dir); err != nil {
		return nil, nil, err
	}
	return r, script, nil
}

// Fits is ErrInvalid where the machine could never run a job of this size.
func (d *Driver) Fits(want driver.Room) error {
	const mib = 1 << 20
	switch {
	case want.Cores > d.room.Cores:
		return fmt.Errorf("%w: it asks for %d cores, and this machine has %d for jobs; ask for fewer", driver.ErrInvalid, want.Cores, d.room.Cores)
	case want.Memory > d.room.Memory:
		return fmt.Errorf("%w: it asks for %d MiB of memory, and this machine has %d MiB for jobs; ask for less", driver.ErrInvalid, want.Memory/mib, d.room.Memory/mib)
	case want.Cores < 1 || want.Memory < 0:
		return fmt.Errorf("%d cores and %d bytes of memory: %w", want.Cores, want.Memory, driver.ErrInvalid)
	}
	return nil
}

// setOutput decides where the output goes: the job file's own pattern, relative to
// the working directory, or a file next to the record.
func (r *record) setOutput(s store) {
	if r.File.Output == "" {
		r.Output, r.OwnOut = filepath.Join(s.job(r.Job.ID), "output.log"), true
		return
	}
	path := strings.NewReplacer("%%", "%", "%j", string(r.Job.ID), "%x", r.Job.Name, "%u", r.Job.Owner).Replace(r.File.Output)
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.Dir, path)
	}
	r.Output = path
}

// makeJob makes the job's directory and script. It can be repeated.
func (d *Driver) makeJob(r *record, script []byte) error {
	dir := d.store.job(r.Job.ID)
	if err := durable.MkdirAll(dir, 0o711); err != nil {
		return err
	}
	if script != nil {
		return r.give(d.store.script(r.Job.ID), script, 0o500)
	}
	for _, sub := range []string{"alloc", "local", "secrets"} {
		path := filepath.Join(dir, sub)
		if err := errors.Join(durable.MkdirAll(path, 0o700), r.own(path)); err != nil {
			return err
		}
	}
	return nil
}

func (r *record) own(path string) error {
	if r.User == nil {
		return nil
	}
	return os.Chown(path, int(r.User.UID), int(r.User.GID))
}

// give writes a file of the job's user.
func (r *record) give(path string, data []byte, mode os.FileMode) error {
	return durable.WriteWith(path, data, mode, func(f *os.File) error { return r.own(f.Name()) })
}

// interpreter splits a script's first line as the kernel does: one command and at
// most one argument.
func interpreter(script []byte) []string {
	first, _, _ := bytes.Cut(script, []byte("\n"))
	command, arg, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(string(first), "#!")), " ")
	return slices.DeleteFunc([]string{command, strings.TrimSpace(arg)}, func(word string) bool { return word == "" })
}

// runAs sets the user that a job runs as. Only root runs jobs for others.
func (r *record) runAs(ctx context.Context, name string) error {
	self, err := user.Current()
	if err != nil {
		return fmt.Errorf("who runs this driver: %w: %w", driver.ErrTransient, err)
	}
	if name == "" || name == self.Username {
		r.Job.Owner, r.Home = self.Username, self.HomeDir
		return nil
	}
	u, ids, err := lookup(ctx, name)
	switch {
	case err != nil:
		return fmt.Errorf("user %q: %w: %w", name, driver.ErrTransient, err)
	case u == nil:
		return fmt.Errorf("user %q is unknown: %w", name, driver.ErrInvalid)
	case os.Geteuid() != 0:
		return fmt.Errorf("user %s may not run jobs of user %s: %w", self.Username, name, driver.ErrDenied)
	}
	var numbers []uint32
	for _, text := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return fmt.Errorf("user %q: %w: %w", name, driver.ErrInvalid, err)
		}
		numbers = append(numbers, uint32(n))
	}
	r.Job.Owner, r.Home = u.Username, u.HomeDir
	r.User = &supervise.User{UID: numbers[0], GID: numbers[1], Groups: numbers[2:]}
	return nil
}

// lookup returns a user with the groups, nil where there is none. A static program reads
// /etc/passwd alone, so that the machine's directory service is asked about others.
func lookup(ctx context.Context, name string) (*user.User, []string, error) {
	u, err := user.Lookup(name)
	if err == nil {
		ids, err := u.GroupIds()
		return u, ids, err
	}
	if _, ok := errors.AsType[user.UnknownUserError](err); !ok {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	entry, _ := exec.CommandContext(ctx, "getent", "passwd", "--", name).Output()
	ids, _ := exec.CommandContext(ctx, "id", "-G", "--", name).Output()
	f, groups := strings.Split(string(entry), ":"), strings.Fields(string(ids))
	if len(f) < 7 || f[0] != name || len(groups) == 0 { // getent takes a number for a uid
		return nil, nil, ctx.Err()
	}
	return &user.User{Username: f[0], Uid: f[2], Gid: f[3], HomeDir: f[5]}, groups, nil
}
