package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/journal"
	"pitchpipe/driver/slurm/parse"
)

// Start submits a job. The request id is claimed before sbatch is called, and the
// job carries a marker of the request in its comment: where it is not known
// whether sbatch had its effect, the marker is looked for, and nothing is
// submitted again before Config.Quiet has passed.
func (d *Driver) Start(ctx context.Context, id driver.RequestID, spec driver.Spec) (driver.Job, error) {
	if id == "" {
		return driver.Job{}, fmt.Errorf("start: no request id: %w", driver.ErrInvalid)
	}
	defer d.hold(driver.JobID("request " + string(id)))()
	req, err := d.journal.Request(id)
	known := err == nil
	switch {
	case known && req.Job != "":
		return d.Get(ctx, req.Job)
	case known:
		if job, err := d.find(ctx, req, spec); err == nil || !errors.Is(err, driver.ErrNotFound) {
			return job, err
		}
		if left := d.cfg.Quiet - time.Since(req.Tried); left > 0 {
			return driver.Job{}, fmt.Errorf("start: request %s was submitted with an unknown outcome, and is looked for during another %v: %w",
				id, left.Round(time.Second), driver.ErrUnknown)
		}
		if d.site.age < 0 || d.site.age > 0 && time.Since(req.Tried) >= d.site.age {
			return driver.Job{}, fmt.Errorf("start: request %s was submitted with an unknown outcome, and slurmctld may have forgotten its job by now; "+
				"see whether it ran, and submit under another request if it did not: %w", id, driver.ErrUnknown)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	call, err := d.submission(ctx, id, spec)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: %w", err)
	}
	req = journal.Request{ID: id, Marker: d.journal.Marker(id), Tried: time.Now()}
	if known {
		err = d.journal.Keep(req)
	} else {
		err = d.journal.Claim(req)
	}
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	d.cfg.AfterStep("claimed")
	out, err := d.cfg.Commands.Run(ctx, call)
	d.cfg.AfterStep("submitted")
	if err != nil {
		return driver.Job{}, d.refused(id, err)
	}
	number, _, _ := strings.Cut(strings.TrimSpace(string(out.Stdout)), ";") // behind it the cluster
	if !digits(number) {
		return driver.Job{}, fmt.Errorf("start: sbatch printed %.100q: %w", out.Stdout, driver.ErrUnknown)
	}
	return d.adopt(ctx, req, driver.JobID(number), spec)
}

// refused frees a request that certainly made no job.
func (d *Driver) refused(id driver.RequestID, err error) error {
	var failed *command.Failed
	if errors.As(err, &failed) && (errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrDenied) || failed.Unreached()) {
		if free := d.journal.Free(id); free != nil {
			return fmt.Errorf("start: %w: %w", err, free)
		}
	}
	return fmt.Errorf("start: %w", err)
}

// find looks for the job that a request made.
func (d *Driver) find(ctx context.Context, req journal.Request, spec driver.Spec) (driver.Job, error) {
	out, err := d.ask(ctx, "squeue", "-h", "-a", "-t", "all", "-u", d.cfg.User, "-o", parse.CommentFormat)
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: looking for request %s: %w", req.ID, err)
	}
	for _, c := range parse.Comments(out) {
		if slices.Contains(strings.Fields(c[1]), req.Marker) {
			return d.adopt(ctx, req, driver.JobID(c[0]), spec)
		}
	}
	return driver.Job{}, fmt.Errorf("start: request %s: %w", req.ID, driver.ErrNotFound)
}

// adopt makes the record of a job that a request made. It can be repeated.
func (d *Driver) adopt(ctx context.Context, req journal.Request, id driver.JobID, spec driver.Spec) (driver.Job, error) {
	release := d.hold(id)
	j, err := d.look(ctx, id)
	if err != nil {
		release()
		return driver.Job{}, fmt.Errorf("start: request %s made job %s: %w: %v", req.ID, id, driver.ErrUnknown, err) //nolint:errorlint // not found would have it submitted again
	}
	r := &journal.Record{
		Job: id, Request: req.ID, Filename: spec.Filename, Script: spec.Source, Env: maps.Clone(spec.Env),
		Submitted: j.Submitted, Own: sizeOf(j), Delayed: !spec.NotBefore.IsZero() && !ownBegin(spec.Source),
	}
	have := r.Own
	r.Set = &have
	if waiting(j.State) && *d.cfg.ReadOutput {
		r.Output = d.mark(j, j.Restarts+1)
	}
	err = d.write(r, "created")
	release()
	if err != nil {
		return driver.Job{}, fmt.Errorf("start: %w", err)
	}
	req.Job = id
	if err := d.journal.Keep(req); err != nil {
		return driver.Job{}, fmt.Errorf("start: %w: %w", driver.ErrTransient, err)
	}
	return d.Get(ctx, id)
}

// submission judges a job and makes the call of sbatch.
func (d *Driver) submission(ctx context.Context, id driver.RequestID, spec driver.Spec) (command.Call, error) {
	file, err := d.cfg.Parse(spec.Filename, spec.Source, spec.Variables)
	if err != nil {
		return command.Call{}, fmt.Errorf("%w: %w", driver.ErrInvalid, err)
	}
	if file.Format != jobfile.Sbatch {
		return command.Call{}, fmt.Errorf("Slurm runs batch scripts, not a file of format %s: %w", file.Format, driver.ErrInvalid) //nolint:staticcheck // a name
	}
	if spec.Owner != "" && spec.Owner != d.cfg.User {
		return command.Call{}, fmt.Errorf("user %s may not submit jobs of user %s: %w", d.cfg.User, spec.Owner, driver.ErrDenied)
	}
	partition := file.Partition
	if partition == "" && len(d.cfg.Partitions) > 0 {
		partition = d.cfg.Partitions[0]
	}
	if len(d.cfg.Partitions) > 0 && !slices.Contains(d.cfg.Partitions, partition) {
		return command.Call{}, fmt.Errorf("partition %s is not one of those that are watched: %w", partition, driver.ErrDenied)
	}
	if err := d.fits(ctx, partition, file.Cores, file.MemoryBytes); err != nil {
		return command.Call{}, err
	}
	comment := strings.TrimSpace(ownComment(spec.Source) + " " + d.journal.Marker(id))
	args := []string{"--parsable", "--open-mode=append", "--comment=" + comment, "--job-name=" + file.Name}
	if !file.NoRequeue {
		args = append(args, "--requeue")
	}
	if partition != "" {
		args = append(args, "--partition="+partition)
	}
	if spec.Dir != "" && file.Dir == "" {
		args = append(args, "--chdir="+spec.Dir)
	}
	if wait := time.Until(spec.NotBefore); wait > 0 && !ownBegin(spec.Source) {
		// sbatch counts whole seconds, from the one that has begun.
		args = append(args, fmt.Sprintf("--begin=now+%dseconds", int(math.Ceil(wait.Seconds()))+1))
	}
	return command.Call{Name: "sbatch", Args: args, Stdin: spec.Source, Effect: true, Env: d.environment(merged(marked(file), spec.Env))}, nil
}

// marked is the variable that tells the TaskProlog of a job with a stanza. Where
// the site's submission plugin sets it, it sets the same.
func marked(file *jobfile.Job) map[string]string {
	m := mark(file)
	if m == "" {
		return nil
	}
	return map[string]string{"PITCHPIPE_JOB": m}
}

// environment is what a submitted job finds: the usual of this process, and what
// the submission sets.
func (d *Driver) environment(set map[string]string) []string {
	env := map[string]string{"PATH": command.Path()}
	for _, name := range []string{"HOME", "USER", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	maps.Copy(env, set)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(env)) {
		out = append(out, name+"="+env[name])
	}
	return out
}

// ownComment is the comment that a script gives itself, which an option of sbatch
// would replace.
func ownComment(script []byte) string {
	m := regexp.MustCompile(`(?m)^#SBATCH\s(?:.*\s)?--comment[= ](?:"([^"\n]*)"|'([^'\n]*)'|(\S+))`).FindSubmatch(script)
	if m == nil {
		return ""
	}
	return string(m[1]) + string(m[2]) + string(m[3])
}

// ownBegin tells whether a script says itself when it is to begin. An option of
// sbatch would replace that, and the wait is its owner's.
func ownBegin(script []byte) bool {
	return regexp.MustCompile(`(?m)^#SBATCH\s(?:.*\s)?(?:--begin[=\s]|-b\s*\S)`).Match(script)
}

// fits refuses what no node of a partition has. Slurm itself accepts some such
// jobs, which then wait for ever.
func (d *Driver) fits(ctx context.Context, partition string, cores int, memory int64) error {
	args := []string{"-h", "-e", "-o", parse.NodesFormat}
	if partition != "" {
		args = append(args, "-p", partition)
	} else {
		args = append(args, "-a")
	}
	out, err := d.ask(ctx, "sinfo", args...)
	if err != nil {
		return fmt.Errorf("sizes of the nodes: %w", err)
	}
	nodes, err := parse.Partitions(out)
	if err != nil {
		return fmt.Errorf("sizes of the nodes: %w: %w", driver.ErrTransient, err)
	}
	if len(nodes) == 0 {
		return fmt.Errorf("partition %q has no nodes: %w", partition, driver.ErrInvalid)
	}
	for _, n := range nodes {
		if cores <= n.Cores && memory <= n.MemoryBytes {
			return nil
		}
	}
	return fmt.Errorf("no node of the partition has %d cores and %d bytes of memory: %w", cores, memory, driver.ErrInvalid)
}
