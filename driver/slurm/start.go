package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
		job, others, err := d.find(ctx, req, spec)
		if err != nil || job.ID != "" {
			return job, err
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
	if failed, ok := errors.AsType[*command.Failed](err); ok && (errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) || failed.Unreached()) {
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
	if len(d.cfg.Partitions) > 0 && !slices.Contains(d.cfg.Partitions, partition) {
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
