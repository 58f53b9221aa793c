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
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// Start submits a job. The request id is claimed before sbatch is called, and the
// job carries a marker of the request in its comment: where it is not known
// whether sbatch had its effect, the marker is looked for, and nothing is
// submitted again before Config.Quiet has passed. Of an array the job of its first
// task is returned.
func (d *Driver) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	if id == "" {
		return driver.Job{}, fmt.Errorf("start: no request id: %w", driver.ErrInvalid)
	}
	if d.cfg.Everyone {
		return driver.Job{}, fmt.Errorf("start: a site's controller submits no jobs: users submit their own jobs with sbatch: %w", driver.ErrUnsupported)
	}
	defer d.hold(driver.JobID("request " + string(id)))()
	req, err := d.journal.Request(id)
	known := err == nil
	switch {
	case known && req.Job != "":
		return d.Get(ctx, req.Job)
	case known && req.Answer != "": // sbatch named a cluster: it is never called again for this
		return d.answered(ctx, req, req.Answer, spec)
	case known:
		number, others, err := d.seek(ctx, req)
		if err != nil {
			return driver.Job{}, err
		}
		if number != "" {
			return d.adopt(ctx, req, number, spec)
		}
		if left := d.cfg.Quiet - time.Since(req.Tried); left > 0 {
			return driver.Job{}, fmt.Errorf("start: request %s was submitted with an unknown outcome, and is looked for during another %v: %w",
				id, left.Round(time.Second), driver.ErrUnknown)
		}
		conf, err := slurmctl.Config(ctx, d.cfg.Commands)
		if err != nil {
			return driver.Job{}, fmt.Errorf("start: %w", err)
		}
		if age := conf.Remembers(); age < 0 || age > 0 && time.Since(req.Tried) >= age {
			return driver.Job{}, fmt.Errorf("start: request %s was submitted with an unknown outcome, and slurmctld may have forgotten its job by now; "+
				"see whether it ran, and submit under another request if it did not: %w", id, driver.ErrUnknown)
		}
		if err := d.suspect(ctx, req, spec, others); err != nil {
			return driver.Job{}, err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	call, err := d.draft(ctx, id, spec)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: %w", err)
	}
	req = Request{ID: id, Marker: d.journal.Marker(id), Tried: time.Now()}
	if err := d.journal.Keep(req); err != nil {
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	d.cfg.AfterStep("claimed")
	out, err := d.cfg.Commands.Run(ctx, call)
	d.cfg.AfterStep("submitted")
	if err != nil {
		return driver.Job{}, d.refused(id, err)
	}
	answer := strings.TrimSpace(string(out.Stdout))
	if number, _, named := strings.Cut(answer, ";"); named && parse.Digits(number) { // a job of this cluster is found by its marker
		req.Answer = answer
		if err := d.journal.Keep(req); err != nil {
			return driver.Job{}, fmt.Errorf("start: sbatch printed %.100q: %w: %w", answer, driver.ErrUnknown, err)
		}
	}
	return d.answered(ctx, req, answer, spec)
}

// answered follows up what sbatch printed. Where clusters are federated it names one.
func (d *Driver) answered(ctx context.Context, req Request, answer string, spec driver.Spec) (driver.Job, error) {
	number, err := here(ctx, d.cfg.Commands, answer)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: request %s: %w", req.ID, err)
	}
	return d.adopt(ctx, req, number, spec)
}

// refused frees a request that certainly made no job.
func (d *Driver) refused(id driver.RequestID, err error) error {
	none := errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrNoRoom)
	if failed, ok := errors.AsType[*command.Failed](err); ok && (none || failed.Unreached()) {
		if free := d.journal.Free(id); free != nil {
			return fmt.Errorf("start: %w: %w", err, free)
		}
	}
	return fmt.Errorf("start: %w", err)
}

// draft judges a job and makes the call of sbatch.
func (d *Driver) draft(ctx context.Context, id driver.RequestID, spec driver.Spec) (command.Call, error) {
	file, err := d.cfg.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return command.Call{}, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	if spec.Owner != "" && spec.Owner != d.cfg.User {
		return command.Call{}, fmt.Errorf("user %s may not submit jobs of user %s: %w", d.cfg.User, spec.Owner, driver.ErrDenied)
	}
	env := environment(driver.Merge(markOf(file, spec), spec.Env))
	partition := file.Partition
	if v, ok := env["SBATCH_PARTITION"]; ok { // it overrides the script
		partition = v
	}
	if partition == "" && len(d.cfg.Partitions) > 0 {
		partition = d.cfg.Partitions[0]
	}
	if len(d.cfg.Partitions) > 0 && !slurmctl.Within(d.cfg.Partitions, partition) {
		return command.Call{}, fmt.Errorf("partition %s is not one of those that are watched: %w", partition, driver.ErrDenied)
	}
	call, err := submission(file, spec, d.journal.Marker(id), partition, env)
	if err != nil {
		return command.Call{}, err
	}
	return call, d.fits(ctx, partition, file.Cores, file.MemoryBytes)
}

// fits refuses what no node of a partition has. Slurm itself accepts some such
// jobs, which then wait for ever.
func (d *Driver) fits(ctx context.Context, partition string, cores int, memory int64) error {
	where := []string{"-a"}
	if partition != "" {
		where = []string{"-p", partition}
	}
	nodes, err := command.Read(ctx, d.cfg.Commands, parse.Nodes, "sinfo", append(where, "-h", "-N", "-O", parse.NodeFormat)...)
	switch {
	case err != nil:
		return fmt.Errorf("sizes of the nodes: %w", err)
	case len(nodes) == 0:
		return fmt.Errorf("partition %q has no nodes: %w", partition, driver.ErrInvalid)
	case slices.ContainsFunc(nodes, func(n parse.Node) bool { return cores <= n.CPUs && memory <= n.Memory }):
		return nil
	}
	return fmt.Errorf("no node of the partition has %d cores and %d bytes of memory: %w", cores, memory, driver.ErrInvalid)
}

// seek is the number of the job that carries the marker of a request. The jobs are returned where
// none has it.
func (d *Driver) seek(ctx context.Context, req Request) (driver.JobID, []parse.Job, error) {
	out, err := command.Ask(ctx, d.cfg.Commands, "scontrol", "-o", "show", "job")
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
// and none is to come, driver.ErrUnknown while sbatch may still have its effect.
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

// margin is how much the clock of slurmctld may differ.
const margin = time.Minute

// suspect looks for a job that the request may have made although it does not carry
// its marker: its owner can edit the comment. One of the same name and script that was submitted
// since and has no other owner is a reason not to submit again.
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
	printed, _, err := d.printed(ctx, number)
	if err != nil {
		return parse.Job{}, err
	}
	jobs := slices.DeleteFunc(tasks(printed), func(j parse.Job) bool { return !d.of(j.User) })
	if len(jobs) == 0 {
		return parse.Job{}, fmt.Errorf("job %s: %w", number, driver.ErrNotFound)
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
		return driver.Job{}, fmt.Errorf("start: request %s made job %s: %w: %v", req.ID, number, driver.ErrUnknown, err) //nolint:errorlint // not found would submit it again
	}
	id := nameOf(j)
	release := d.hold(id)
	// The watch may have met the job before its request was known to have made it, and
	// an intent may have begun: what is on record of those stays.
	r, ok, err := d.journal.Find(id)
	if !ok || another(j, r) || r.Request != "" && r.Request != req.ID {
		r = d.first(j)
	}
	file, bad := d.cfg.Parse(spec.Filename, spec.Source, spec.Variables)
	waits := bad == nil && delayed(file, spec)
	r.Request, r.Filename, r.Script, r.Env = req.ID, spec.Filename, spec.Source, maps.Clone(spec.Env)
	r.Delayed = r.Delayed || waits && len(r.Attempts) == 0 && r.Moving == nil && r.Next == nil
	if err == nil && j.ArrayJob != "" {
		err = d.journal.Arrays.Write(&Record{
			Job: driver.JobID(j.ArrayJob), User: j.User, Request: r.Request, Filename: r.Filename, Script: r.Script, Env: r.Env,
			Submitted: j.Submitted, Delayed: waits,
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
