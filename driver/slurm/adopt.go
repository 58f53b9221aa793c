package slurm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/parse"
)

// find looks for the job that a request made, by its marker. Where none has it the jobs are
// returned.
func (d *Driver) find(ctx context.Context, req Request, spec driver.Spec) (driver.Job, []parse.Job, error) {
	number, jobs, err := d.seek(ctx, req)
	if err != nil || number == "" {
		return driver.Job{}, jobs, err
	}
	job, err := d.adopt(ctx, req, number, spec)
	return job, nil, err
}

// seek is the number of the job that carries the marker of a request, empty where none does.
func (d *Driver) seek(ctx context.Context, req Request) (driver.JobID, []parse.Job, error) {
	out, err := d.ask(ctx, "scontrol", "-o", "show", "job")
	if err != nil {
		return "", nil, fmt.Errorf("start: looking for request %s: %w", req.ID, err)
	}
	jobs, _ := parse.Jobs(out)
	for _, j := range jobs {
		if d.of(j.User) && slices.Contains(strings.Fields(j.Comment), req.Marker) {
			return scriptID(j), nil, nil
		}
	}
	if bytes.Contains(out, []byte(req.Marker)) {
		return "", nil, fmt.Errorf("start: request %s made a job that cannot be read: %w", req.ID, driver.ErrUnknown)
	}
	return "", jobs, nil
}

// Find is the job of a request, so that it can be stopped: driver.ErrNotFound where there is none
// and none is to come, driver.ErrUnknown while sbatch may have its effect yet.
func (d *Driver) Find(ctx context.Context, id driver.RequestID) (driver.JobID, error) {
	defer d.hold(driver.JobID("request " + string(id)))()
	req, err := d.journal.Request(id)
	var number driver.JobID
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = fmt.Errorf("it was not submitted: %w", driver.ErrNotFound)
	case err != nil:
		err = fmt.Errorf("%w: %w", driver.ErrTransient, err)
	case req.Job != "":
		return req.Job, nil
	case req.Answer != "":
		number, err = here(ctx, d.cfg.Commands, req.Answer)
	default:
		if number, _, err = d.seek(ctx, req); err == nil && number == "" {
			err = fmt.Errorf("none has its marker: %w", driver.ErrNotFound)
			if left := d.cfg.Quiet - time.Since(req.Tried); left > 0 {
				err = fmt.Errorf("sbatch may have its effect during another %v: %w", left.Round(time.Second), driver.ErrUnknown)
			}
		}
	}
	var j parse.Job
	if err == nil {
		j, err = d.submitted(ctx, string(number))
	}
	if err != nil {
		return "", fmt.Errorf("job of request %s: %w", id, err)
	}
	return nameOf(j), nil
}

// margin is by how much the clock of slurmctld may differ.
const margin = time.Minute

// suspect looks for a job that the request may have made although it does not carry
// its marker: its owner can edit the comment. One of the same name and script that
// was submitted since and is no one else's is a reason not to submit again.
func (d *Driver) suspect(ctx context.Context, req Request, spec driver.Spec, jobs []parse.Job) error {
	file, err := d.cfg.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return nil //nolint:nilerr // such a job is not submitted, and Start says why
	}
	for _, j := range jobs {
		if j.User != d.cfg.User || j.Name != file.Name || !j.Batch || j.Submitted.Before(req.Tried.Add(-margin)) || strings.Contains(j.Comment, MarkerKey) {
			continue
		}
		if r, ok, err := d.journal.Find(nameOf(j)); err == nil && ok && r.Request != "" && r.Request != req.ID {
			continue
		}
		script, err := d.cfg.Actor.Script(ctx, j.ID)
		if err != nil && !errors.Is(err, driver.ErrNotFound) {
			return fmt.Errorf("start: looking for request %s: script of job %s: %w", req.ID, j.ID, err)
		}
		if err == nil && fingerprint(script) == fingerprint(spec.Source) {
			return fmt.Errorf("start: request %s was submitted with an unknown outcome, and job %s, which does not say whose it is, has its name and script; "+
				"see whether it is the one, and submit under another request if it is not: %w", req.ID, nameOf(j), driver.ErrUnknown)
		}
	}
	return nil
}

// submitted returns the job of a number that sbatch gave: of an array its first task.
func (d *Driver) submitted(ctx context.Context, number string) (parse.Job, error) {
	out, err := d.ask(ctx, "scontrol", "-o", "show", "job", number)
	if err != nil {
		return parse.Job{}, err
	}
	printed, unreadable := parse.Jobs(out)
	jobs := slices.DeleteFunc(tasks(printed), func(j parse.Job) bool { return !d.of(j.User) })
	if len(jobs) == 0 {
		return parse.Job{}, errors.Join(fmt.Errorf("job %s: %w", number, driver.ErrNotFound), unreadable)
	}
	return slices.MinFunc(jobs, func(a, b parse.Job) int {
		return ordinal(driver.JobID(a.ArrayTask)) - ordinal(driver.JobID(b.ArrayTask))
	}), nil
}

// adopt makes the record of a job that a request made, and of an array what its
// tasks have in common. It can be repeated.
func (d *Driver) adopt(ctx context.Context, req Request, number driver.JobID, spec driver.Spec) (driver.Job, error) {
	j, err := d.submitted(ctx, string(number))
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: request %s made job %s: %w: %v", req.ID, number, driver.ErrUnknown, err) //nolint:errorlint // not found would have it submitted again
	}
	id := nameOf(j)
	release := d.hold(id)
	// The watch may have met the job before its request was known to have made it, and
	// an intent may have begun: what is on record of those stays.
	r, ok, err := d.journal.Find(id)
	if !ok || another(j, r) || r.Request != "" && r.Request != req.ID {
		r = d.first(j)
	}
	delayed := !spec.NotBefore.IsZero() && !ownBegin(spec.Source)
	r.Request, r.Filename, r.Script, r.Env = req.ID, spec.Filename, spec.Source, maps.Clone(spec.Env)
	r.Delayed = r.Delayed || delayed && len(r.Attempts) == 0 && r.Moving == nil && r.Next == nil
	if err == nil && j.ArrayJob != "" {
		err = d.journal.Arrays.Write(&Record{
			Job: driver.JobID(j.ArrayJob), User: j.User, Request: r.Request, Filename: r.Filename, Script: r.Script, Env: r.Env,
			Submitted: j.Submitted, Delayed: delayed,
		})
	}
	if err == nil {
		err = d.write(r, "created")
	}
	release()
	req.Job = id
	if err == nil {
		err = d.journal.Keep(req)
	}
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	return d.Get(ctx, id)
}
