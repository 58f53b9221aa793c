package slurm

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// jobID names a job as its owner does: a task of an array by the array's number.
func jobID(id, array, task string) driver.JobID {
	if array != "" && parse.Digits(task) {
		return driver.JobID(array + "_" + task)
	}
	return driver.JobID(id)
}

// read returns one job of the partitions that are watched. One that has a record
// is ours wherever it was moved to.
func (d *Driver) read(ctx context.Context, id driver.JobID) (parse.Job, error) {
	j, err := d.show(ctx, id)
	if err != nil || d.mine(j) {
		return j, err
	}
	if _, ok, err := d.journal.Find(id); err != nil || ok {
		return j, err
	}
	return parse.Job{}, fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
}

// show reads one job, in whichever partition. An array is not one job: only its tasks are.
func (d *Driver) show(ctx context.Context, id driver.JobID) (parse.Job, error) {
	none := fmt.Errorf("job %s: %w", id, driver.ErrNotFound)
	if !parse.Named(string(id)) {
		return parse.Job{}, none
	}
	printed, _, err := d.printed(ctx, string(id))
	if err != nil {
		return parse.Job{}, err
	}
	jobs := tasks(printed)
	switch i := slices.IndexFunc(jobs, func(j parse.Job) bool { return nameOf(j) == id }); {
	case i >= 0 && d.of(jobs[i].User):
		return jobs[i], nil
	case i < 0 && d.of(jobs[0].User):
		return parse.Job{}, driver.ArrayError{Array: id, Task: nameOf(jobs[0])}
	}
	return parse.Job{}, none
}

// printed asks scontrol for the job of a name, or for those of an array, no matter whose they
// are. At least one is returned: an answer that cannot be read is driver.ErrUnsupported.
func (d *Driver) printed(ctx context.Context, name string) ([]parse.Job, time.Duration, error) {
	out, cost, err := d.paid(ctx, "scontrol", "-o", "show", "job", name)
	jobs, unreadable := parse.Jobs(out)
	_, failed := errors.AsType[*command.Failed](err)
	switch {
	case failed && strings.HasSuffix(strings.TrimSpace(string(out)), " not found"):
		err = driver.ErrNotFound // so it says, where others print their jobs, of a task that its array does not have, or no longer has
	case err != nil || len(jobs) > 0:
	case unreadable != nil:
		err = fmt.Errorf("%w: %w", driver.ErrUnsupported, unreadable)
	default:
		err = driver.ErrNotFound
	}
	if err != nil {
		return nil, cost, fmt.Errorf("job %s: %w", name, err)
	}
	return jobs, cost, nil
}

// of reports whether the jobs of a user are seen.
func (d *Driver) of(user string) bool { return d.cfg.Everyone || user == d.cfg.User }

// mine reports whether a job is one of those that are seen.
func (d *Driver) mine(j parse.Job) bool {
	return d.watched(j.User, j.Partition) && (!d.cfg.Marked || slurmctl.HasStanza(j))
}

func (d *Driver) watched(user, partition string) bool {
	all := len(d.cfg.Partitions) == 0
	return d.of(user) && (all || slices.ContainsFunc(strings.Split(partition, ","), func(p string) bool { return slices.Contains(d.cfg.Partitions, p) }))
}

// observe reads a job and brings its record up to date. The record is nil where
// there is none. The caller holds the job.
func (d *Driver) observe(ctx context.Context, id driver.JobID) (parse.Job, *Record, error) {
	j, err := d.read(ctx, id)
	if err != nil {
		return j, nil, err
	}
	r, ok, err := d.entered(j)
	if err == nil && !ok && j.Raised() { // what it asks for is written down: once it runs it does not tell any more
		if r, err = d.open(ctx, j); err == nil {
			err = d.write(r, "raised")
		}
		return j, r, err
	}
	if err != nil || !ok {
		return j, nil, err
	}
	if another(j, r) {
		return j, nil, nil
	}
	before, _ := json.Marshal(r)
	back := r.Last != nil && !parse.Ended(j.State) // by its owner's word, or slurmctld has forgotten its end
	if !parse.Ended(j.State) {
		r.Last, r.Missed = nil, time.Time{}
	}
	d.listenToOwner(r, j)
	follow(r, j, time.Now())
	if back { // it still has the size that goes with the settings
		if err := d.writeSettings(j, r, d.sketch(j, r).Change, ""); err != nil {
			return j, r, err
		}
	}
	after, err := json.Marshal(r)
	switch {
	case err != nil || bytes.Equal(before, after) && (r.Last != nil || !parse.Ended(j.State)):
		return j, r, err
	case d.killed(j, r):
		if r.Moving == nil {
			takeBack(j, r)
		}
	case parse.Ended(j.State):
		last, err := d.view(ctx, j, r)
		if err != nil {
			return j, r, err
		}
		return j, r, d.conclude(r, last, "followed")
	}
	return j, r, d.write(r, "followed")
}

// another reports whether this is another job under a number that came round. A job whose end
// slurmctld forgot has the time of its submission still.
func another(j parse.Job, r *Record) bool {
	switch {
	case r.User != "" && r.User != j.User, j.Submitted.Before(r.Submitted.Add(-time.Minute)):
		return true
	case r.Last == nil || parse.Ended(j.State):
		return false
	}
	return len(r.Attempts) > j.Restarts+1 || j.Restarts == 0 && j.Submitted.After(r.Last.Ended)
}

// past returns a job that slurmctld no longer knows; why is what it answered.
func (d *Driver) past(ctx context.Context, id driver.JobID, why error) (driver.Job, error) {
	r, ok, err := d.journal.Find(id)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: %w", err)
	}
	if ok && r.Last != nil {
		return *r.Last, nil
	}
	conf, err := slurmctl.Config(ctx, d.cfg.Commands)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: %w", id, err)
	}
	if _, array := errors.AsType[driver.ArrayError](why); conf.Accounts() && !array { // a task that has the array's number may be there before the others
		job, err := d.accounted(ctx, id, r)
		runaway := false
		if err == nil && ok && !job.State.Ended() {
			runaway, err = d.runaway(r)
		}
		if !runaway && !errors.Is(err, driver.ErrNotFound) {
			return job, err
		}
	}
	if ok {
		return d.forgotten(id, r)
	}
	return driver.Job{}, fmt.Errorf("get: %w", why)
}

func (d *Driver) accounted(ctx context.Context, id driver.JobID, r *Record) (driver.Job, error) {
	args := arguments{"-j", string(id), "-S", "1970-01-01"}
	args.when(d.cfg.Everyone, "-a")
	args.when(!d.cfg.Everyone, "-u", d.cfg.User)
	jobs, err := d.accounting(ctx, args...)
	if err != nil {
		return driver.Job{}, fmt.Errorf("get: job %s: accounting: %w", id, err)
	}
	array, task, isTask := strings.Cut(string(id), "_")
	if !isTask { // asked for an array, sacct prints its tasks
		array = ""
		if slices.ContainsFunc(jobs, func(j parse.Job) bool { return j.ID != string(id) }) {
			jobs = nil
		}
	}
	// The accounting does not say whether it was marked: it was seen then, or was not marked.
	if len(jobs) == 0 || !d.watched(jobs[0].User, jobs[0].Partition) || d.cfg.Marked && r == nil {
		return driver.Job{}, fmt.Errorf("get: job %s: %w", id, driver.ErrNotFound)
	}
	j := jobs[len(jobs)-1]
	j.ArrayJob, j.ArrayTask, j.Node = array, task, "accounted"
	if j.State == "REQUEUED" { // and no one knows of a run after it: it was cancelled before that
		j.State = "CANCELLED"
	}
	if r != nil {
		j.Restarts = max(len(r.Attempts)-1, 0)
	}
	job := d.sketch(j, r)
	job.Node = ""
	if r == nil || !job.State.Ended() {
		return job, nil
	}
	follow(r, j, time.Now())
	job = d.sketch(j, r)
	job.Node = ""
	return job, d.conclude(r, job, "accounted")
}

// runaway reports whether slurmctld has not known a job for an hour, of which the accounting says that it
// has not ended: what slurmctld had to write there was lost.
func (d *Driver) runaway(r *Record) (bool, error) {
	if r.Missed.IsZero() {
		r.Missed = time.Now().UTC()
		return false, d.write(r, "missed")
	}
	return time.Since(r.Missed) >= time.Hour, nil
}

// conclude notes how a job ended.
func (d *Driver) conclude(r *Record, last driver.Job, step string) error {
	r.Last = &last
	if err := d.dropSettings(r); err != nil {
		return err
	}
	return d.write(r, step)
}

// forgotten is a job on record that no one remembers. It has ended, and how is not
// known: where an intent of ours was in progress it counts as lost by us, else as disposed of
// by its owner, which is neither a success nor a failure.
func (d *Driver) forgotten(id driver.JobID, r *Record) (driver.Job, error) {
	j := parse.Job{
		ID: string(id), State: "CANCELLED", User: r.User, Submitted: r.Submitted, Ended: time.Now().UTC(),
		Restarts: max(len(r.Attempts)-1, 0), Node: "?", Tasks: 1,
	}
	detail := driver.DetailForgotten
	switch {
	case r.Moving != nil:
		j.State, detail = "NODE_FAIL", "slurmctld does not know it any more, while it was being changed"
	case len(r.Attempts) == 0:
		j.Node = ""
	}
	if array := arrayOf(id); array != "" {
		j.ID, j.ArrayJob, j.ArrayTask = cmp.Or(r.Number, array), array, strings.TrimPrefix(string(id), array+"_")
	}
	job := d.sketch(j, r)
	job.Node, job.Detail, job.ExitCode = "", detail, -1
	r.Moving, r.Next = nil, nil
	return job, d.conclude(r, job, "forgotten")
}

// text is what a job's script says.
type text struct {
	key         string // of the job that has it: numbers come round
	script      []byte
	fingerprint string
	command     string
	env         map[string]string
	fixed       map[string]jobfile.Pos
	export      string // of its option
}

// textKey distinguishes a job from another that has its number later, and what its owner
// says in its comment from what he said before.
func textKey(j parse.Job) string {
	return j.Command + "\x00" + j.Name + "\x00" + j.WorkDir + "\x00" + string(sbatch.WithComment(nil, j.Comment))
}

// known returns what is known of a job's script without asking Slurm.
func (d *Driver) known(j parse.Job, r *Record) (text, bool) {
	id := scriptID(j)
	d.mu.Lock()
	t, ok := d.texts[id]
	d.mu.Unlock()
	switch {
	case ok && (t.key == textKey(j) || r != nil && string(t.script) == string(r.Script)):
		return t, true
	case r != nil:
		return d.learn(j, r.Script), true
	}
	return text{}, false
}

// script reads a job's batch script, where it is not known. Jobs that were not
// submitted with sbatch have none.
func (d *Driver) script(ctx context.Context, j parse.Job, r *Record) (text, error) {
	if t, ok := d.known(j, r); ok || !j.Batch {
		return t, nil
	}
	out, err := slurmctl.ScriptOf(ctx, d.cfg.Actor, string(nameOf(j)), j.ID)
	if err != nil {
		return text{}, fmt.Errorf("script of job %s: %w", nameOf(j), err)
	}
	return d.learn(j, sbatch.WithComment(out, j.Comment)), nil
}

// learn keeps what a script says. A script that this module cannot read is a job without a
// stanza: its reader says so when asked.
func (d *Driver) learn(j parse.Job, script []byte) text {
	t := text{key: textKey(j), script: script, fingerprint: fingerprint(script)}
	if file, err := d.cfg.Parse(j.Name, script, nil); err == nil {
		t.command, t.env, t.fixed, t.export = file.Command, file.Env, file.Fixed, file.Export
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.texts[scriptID(j)] = t
	return t
}

// fingerprint is equal for equal scripts. Slurm ends the last line where its
// author did not.
func fingerprint(script []byte) string {
	if n := len(script); n > 0 && script[n-1] != '\n' {
		script = append(script[:n:n], '\n')
	}
	return driver.Fingerprint(script, nil)
}
