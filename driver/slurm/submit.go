package slurm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// Submit submits a job as the user who runs this process, for a controller that
// tunes everybody's jobs and submits none. A job file that cannot be run is
// driver.ErrInvalid and nothing was submitted. It cannot be repeated: where the
// outcome is driver.ErrUnknown, look with squeue first.
func Submit(ctx context.Context, run command.Runner, file *jobfile.Job, spec driver.Spec) (driver.JobID, error) {
	env := map[string]string{}
	for _, kv := range os.Environ() { // as by sbatch itself
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	if env["SLURM_JOB_ID"] != "" { // the mark and the settings of the job that this runs in are its alone
		delete(env, "PITCHPIPE_JOB")
		delete(env, "PITCHPIPE_SETTINGS")
	}
	env = driver.Merge(env, driver.Merge(markOf(file, spec), spec.Env))
	marker := ""
	if delayed(file, spec) {
		marker = slurmctl.HeadStart
	}
	if all := env["SBATCH_EXPORT"]; settable(file) && exported(file.Export) && (all == "" || strings.Contains(all, "ALL")) {
		marker = strings.TrimSpace(marker + " " + slurmctl.Marked)
	}
	call, err := submission(file, spec, marker, file.Partition, env)
	if err != nil {
		return "", err
	}
	out, err := run.Run(ctx, call)
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	number, err := here(ctx, run, strings.TrimSpace(string(out.Stdout)))
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	return number, nil
}

// Moves reports whether Slurm would put a submitted job back into the queue for another
// setting: it does not where the job's user, his environment, a plugin or the cluster's
// JobRequeue=0 said so at its submission. An error says that it is not known.
func Moves(ctx context.Context, run command.Runner, id driver.JobID) (bool, error) {
	out, err := command.Ask(ctx, run, "scontrol", "-o", "show", "job", string(id))
	if err != nil {
		return false, fmt.Errorf("job %s: %w", id, err)
	}
	jobs, err := parse.Jobs(out)
	if len(jobs) == 0 {
		return false, fmt.Errorf("job %s: %w", id, errors.Join(driver.ErrNotFound, err))
	}
	return jobs[0].Requeue, nil
}

func submission(file *jobfile.Job, spec driver.Spec, marker, partition string, env map[string]string) (command.Call, error) {
	if file.Format != jobfile.Sbatch {
		return command.Call{}, fmt.Errorf("Slurm runs batch scripts, not a file of format %s: %w", file.Format, driver.ErrInvalid) //nolint:staticcheck // a name
	}
	if err := oneCluster(file, env); err != nil {
		return command.Call{}, err
	}
	if len(spec.Env) > 0 && !exported(file.Export) { // the trials of a search would all be the same
		return command.Call{}, fmt.Errorf("the option --export of the script keeps %s from its job: want ALL in it, or no such option: %w",
			strings.Join(slices.Sorted(maps.Keys(spec.Env)), ", "), driver.ErrInvalid)
	}
	args := options(file, spec, marker, partition, env)
	return command.Call{Name: "sbatch", Args: args, Stdin: spec.Source, Effect: true, Env: driver.Environ(env)}, nil
}

// options are those of sbatch. The output is appended to, since a restarted attempt would
// otherwise lose what the one before wrote.
//
// An option overrides what its user says in a variable of sbatch, and over what his
// script says. So none is given that he answers himself, and never --requeue: by itself
// Slurm puts a job back into the queue, unless SBATCH_NO_REQUEUE, the script or
// JobRequeue=0 of the cluster says no, and such a job would run again after a failure of
// its node although it may be none that can.
func options(file *jobfile.Job, spec driver.Spec, marker, partition string, env map[string]string) []string {
	says := func(variable string) bool {
		_, ok := env[variable]
		return ok
	}
	if spec.Off {
		marker = strings.TrimSpace(marker + " " + slurmctl.Off)
	}
	comment := strings.TrimSpace(file.Comment + " " + marker) // the option would replace the script's
	wait := time.Until(spec.NotBefore)
	args := arguments{"--parsable"}
	args.when(file.OpenMode == "" && !says("SBATCH_OPEN_MODE"), "--open-mode=append")
	args.when(!says("SBATCH_JOB_NAME"), "--job-name="+file.Name)
	args.when(comment != "", "--comment="+comment)
	args.when(partition != "" && !says("SBATCH_PARTITION"), "--partition="+partition)
	args.when(spec.Dir != "" && file.Dir == "", "--chdir="+spec.Dir)
	// sbatch counts whole seconds, from the one that has begun.
	args.when(wait > 0 && delayed(file, spec), fmt.Sprintf("--begin=now+%dseconds", int(math.Ceil(wait.Seconds()))+1))
	return args
}

type arguments []string

func (a *arguments) when(wanted bool, more ...string) {
	if wanted {
		*a = append(*a, more...)
	}
}

// markOf is the variable that marks a job with a stanza for the TaskProlog. Where
// the site's submission plugin sets it, it sets the same.
func markOf(file *jobfile.Job, spec driver.Spec) map[string]string {
	m := mark(file)
	switch {
	case m == "":
		return nil
	case spec.Off:
		m = nothing
	}
	return map[string]string{"PITCHPIPE_JOB": m}
}

// environment is what a submitted job finds: the usual of this process, and what
// the submission sets.
func environment(set map[string]string) map[string]string {
	env := map[string]string{"PATH": command.Path()}
	for _, name := range []string{"HOME", "USER", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	return driver.Merge(env, set)
}

// exported reports whether the variables that sbatch finds reach the job: the option --export may
// name those that do.
func exported(option string) bool { return option == "" || strings.Contains(option, "ALL") }

// delayed reports whether a job is submitted so that it waits. One whose script says itself when
// it is to begin is not: an option of sbatch would replace that, and the wait is its owner's.
func delayed(file *jobfile.Job, spec driver.Spec) bool {
	return !spec.NotBefore.IsZero() && file.Begin == ""
}

// oneCluster refuses a job that names the cluster it is for, in its script or in the
// environment that sbatch gets: what is looked at and changed is one cluster, and a job
// of another would be looked for here and never found, or a stranger of its number taken
// for it.
func oneCluster(file *jobfile.Job, env map[string]string) error {
	const want = "want none: a job goes to the cluster whose controller it is given to, and is followed there alone"
	if file.Clusters != (jobfile.Pos{}) {
		return fmt.Errorf("%w: %w", driver.ErrInvalid, jobfile.Errors{{Pos: file.Clusters, Found: "clusters are named", Want: want}})
	}
	for _, name := range []string{"SBATCH_CLUSTERS", "SLURM_CLUSTERS"} {
		if v := env[name]; v != "" {
			return fmt.Errorf("the variable %s names clusters (%.60q); %s: %w", name, v, want, driver.ErrInvalid)
		}
	}
	return nil
}

// here reports whether what sbatch --parsable printed, NUMBER or NUMBER;CLUSTER, is a job
// of this cluster, and returns its number. One of another cluster, as where clusters are
// federated, is driver.ErrUnknown: it is there, and its fate cannot be known here.
func here(ctx context.Context, run command.Runner, answer string) (driver.JobID, error) {
	number, cluster, named := strings.Cut(answer, ";")
	if !parse.Digits(number) {
		return "", fmt.Errorf("sbatch printed %.100q: %w", answer, driver.ErrUnknown)
	}
	if !named {
		return driver.JobID(number), nil
	}
	conf, err := slurmctl.Config(ctx, run)
	if err != nil {
		return "", fmt.Errorf("job %s was submitted to cluster %.60q, and which one this is is not known: %w: %w", number, cluster, driver.ErrUnknown, err)
	}
	if own := conf["ClusterName"]; own == "" || !strings.EqualFold(own, cluster) {
		return "", fmt.Errorf("job %s was submitted to cluster %.60q, and this is %.60q: it runs there and is not followed; look with squeue -M %.60s, and do not submit it again: %w",
			number, cluster, own, cluster, driver.ErrUnknown)
	}
	return driver.JobID(number), nil
}
