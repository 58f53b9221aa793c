package slurm

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/act"
	"pitchpipe/driver/slurm/command"
)

// Submit submits a job as the user who runs this process, for a controller that
// tunes everybody's jobs and submits none. A job file that cannot be run is
// driver.ErrInvalid and nothing was submitted. It cannot be repeated: where the
// outcome is driver.ErrUnknown, look with squeue first.
func Submit(ctx context.Context, run command.Runner, file *jobfile.Job, spec driver.Spec) (driver.JobID, error) {
	if file.Format != jobfile.Sbatch {
		return "", fmt.Errorf("Slurm runs batch scripts, not a file of format %s: %w", file.Format, driver.ErrInvalid) //nolint:staticcheck // a name
	}
	marker := ""
	if !spec.NotBefore.IsZero() && !ownBegin(spec.Source) {
		marker = act.HeadStart
	}
	if all := os.Getenv("SBATCH_EXPORT"); settable(file) && exported(spec.Source) && (all == "" || strings.Contains(all, "ALL")) {
		marker = strings.TrimSpace(marker + " " + act.Marked)
	}
	out, err := run.Run(ctx, command.Call{
		Name: "sbatch", Args: options(file, spec, marker, file.Partition), Stdin: spec.Source, Effect: true,
		Env: append(os.Environ(), pairs(merged(markOf(file), spec.Env))...), // as by sbatch itself
	})
	if err != nil {
		return "", fmt.Errorf("submit: %w", err)
	}
	number, _, _ := strings.Cut(strings.TrimSpace(string(out.Stdout)), ";") // behind it the cluster
	if !digits(number) {
		return "", fmt.Errorf("submit: sbatch printed %.100q: %w", out.Stdout, driver.ErrUnknown)
	}
	return driver.JobID(number), nil
}

// options are those of sbatch. The output is appended to, since an attempt begun
// anew would lose what the one before wrote.
func options(file *jobfile.Job, spec driver.Spec, marker, partition string) []string {
	args := []string{"--parsable", "--open-mode=append", "--job-name=" + file.Name}
	if spec.Off {
		marker = strings.TrimSpace(marker + " " + act.Off)
	}
	if comment := strings.TrimSpace(ownComment(spec.Source) + " " + marker); comment != "" {
		args = append(args, "--comment="+comment)
	}
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
	return args
}

// markOf is the variable that tells the TaskProlog of a job with a stanza. Where
// the site's submission plugin sets it, it sets the same.
func markOf(file *jobfile.Job) map[string]string {
	m := mark(file)
	if m == "" {
		return nil
	}
	return map[string]string{"PITCHPIPE_JOB": m}
}

// environment is what a submitted job finds: the usual of this process, and what
// the submission sets.
func environment(set map[string]string) []string {
	env := map[string]string{"PATH": command.Path()}
	for _, name := range []string{"HOME", "USER", "LANG", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env[name] = v
		}
	}
	maps.Copy(env, set)
	return pairs(env)
}

func pairs(env map[string]string) []string {
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

// exported tells whether the variables that sbatch finds reach the job: an option of the
// script may name those that do.
func exported(script []byte) bool {
	for _, m := range regexp.MustCompile(`(?m)^#SBATCH\s(?:.*\s)?--export[=\s]["']?(\S*)`).FindAllSubmatch(script, -1) {
		if !strings.Contains(string(m[1]), "ALL") {
			return false
		}
	}
	return true
}

// ownBegin tells whether a script says itself when it is to begin. An option of
// sbatch would replace that, and the wait is its owner's.
func ownBegin(script []byte) bool {
	return regexp.MustCompile(`(?m)^#SBATCH\s(?:.*\s)?(?:--begin[=\s]|-b\s*\S)`).Match(script)
}
