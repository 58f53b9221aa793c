package command

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/nomadhcl"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/command"
)

func (a *app) run() *cobra.Command {
	variables, environment, shorter := pairs{}, pairs{}, pairs{}
	var wait, off bool
	var probes int
	var dir, request string
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Submit a job file",
		Long: "A file with errors is refused and nothing is created. The job's id goes to standard output; the times at\n" +
			"which its knobs can act, as in validate, go to standard error.\n\n" +
			"At a Slurm site each user submits with the environment of this command, as with sbatch. Elsewhere a\n" +
			"job gets PATH, HOME, USER, LANG and TMPDIR of the controller alone: load modules in the script.\n\n" +
			"--probe first does short runs of a Nomad job, under its own and up to N other settings; --probe-env makes the\n" +
			"work short. The job is then submitted once, with the best. The same command resumes after an interruption.",
		Args: cobra.ExactArgs(1),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			s, err := a.submission(ctx, args[0], dir, variables, environment)
			chosen, env := request != "", func(name string) string { return environment[name] }
			switch {
			case err != nil:
				return err
			case probes < 0 || (probes > 0) != (len(shorter) > 0):
				return fmt.Errorf("%w --probe %d with %d --probe-env: want how many settings to try, and at least one variable that makes the work short", errInvalid, probes, len(shorter))
			case chosen && probes > 0:
				return fmt.Errorf("%w --request: not with --probe, which knows its short jobs by file and variables", errInvalid)
			}
			s.Request, s.Off = cmp.Or(request, rand.Text()), off
			var job api.Job
			var before time.Time
			if probes > 0 {
				job, before, err = a.probeAndSubmit(ctx, client, s, probing{probes, shorter})
			} else {
				job, err = submit(ctx, s, client.Submit)
			}
			if errors.Is(err, api.ErrUsersSubmit) {
				if chosen {
					return fmt.Errorf("%w --request: the controller of this cluster submits no jobs, so it cannot recognise a repeat", errInvalid)
				}
				env = func(name string) string { return cmp.Or(environment[name], a.env(name)) }
				job, before, err = a.submitWith(ctx, client, s, nil)
			}
			if err != nil {
				return err
			}
			if !off && !a.json {
				a.prospects(ctx, client, placed(api.Draft{Filename: s.Filename, Source: s.Source, Variables: s.Variables}, env))
			}
			if !wait || !a.json { // else the object says it once the job has ended
				err = a.said(job, "%s\n", job.ID)
			}
			if err == nil && wait {
				err = a.wait(ctx, client, job, before)
			}
			return err
		}),
	}
	f := cmd.Flags()
	f.Var(variables, "var", "`k=v`, a variable of a Nomad job file; overrides NOMAD_VAR_k")
	f.Var(environment, "env", "`K=V`, added to the job's environment (repeatable)")
	f.BoolVar(&wait, "wait", false, "show progress on standard error; exit with 1 if the job, or a task of its array, does not succeed")
	f.BoolVar(&off, "off", false, "run this job untuned; it is still measured")
	f.IntVar(&probes, "probe", 0, "first do short runs of the job under its own and `N` other settings")
	f.Var(shorter, "probe-env", "`K=V` that makes the work of these runs short, such as EPOCHS=3")
	f.StringVar(&dir, "dir", "", "the job's directory (default: that of FILE)")
	identified(f, &request, "repeat a submission safely: the same `id` never creates a second job")
	return cmd
}

// identified adds the flag for a request id. An empty one, as of a variable that is not set, would protect from nothing.
func identified(f *pflag.FlagSet, request *string, usage string) {
	f.Func("request", usage, func(id string) error {
		if *request = id; id == "" {
			return errors.New("want an id")
		}
		return nil
	})
}

// readFile is os.ReadFile until ctx ends: a FIFO may have no writer.
func readFile(ctx context.Context, path string) ([]byte, error) {
	var data []byte
	read := make(chan error, 1)
	go func() {
		var err error
		data, err = os.ReadFile(path)
		read <- err
	}()
	select {
	case err := <-read:
		return data, err
	case <-ctx.Done():
		return nil, fmt.Errorf("read %s: %w", path, context.Cause(ctx))
	}
}

// submission is a job file as it is sent. Its folder is that of the file where none is named.
func (a *app) submission(ctx context.Context, file, dir string, variables, environment pairs) (api.Submission, error) {
	source, err := readFile(ctx, file)
	if err != nil {
		return api.Submission{}, invalid("job file", err)
	}
	if i, err := os.Stat(dir); dir != "" && (err != nil || !i.IsDir()) {
		return api.Submission{}, fmt.Errorf("%w --dir %s: want a folder that exists", errInvalid, dir)
	}
	dir, err = absolute(cmp.Or(dir, filepath.Dir(file)))
	return api.Submission{Filename: file, Source: source, Variables: a.variables(file, source, variables), Dir: dir, Env: environment}, err
}

// submit waits for a controller that was just started. The same request never makes a second job or search.
func submit[T any](ctx context.Context, s api.Submission, to func(context.Context, api.Submission) (T, error)) (T, error) {
	for end := time.Now().Add(5 * time.Second); ; {
		out, err := to(ctx, s)
		if !errors.Is(err, api.ErrUnavailable) || time.Now().After(end) || driver.Pause(ctx, 100*time.Millisecond) != nil {
			return out, err
		}
	}
}

// prospects prints when the knobs of a job can act, next to the output.
func (a *app) prospects(ctx context.Context, client *api.Client, d api.Draft) {
	v, err := client.Validate(ctx, d)
	if err != nil || len(v.Prospects) == 0 {
		return // it was submitted, which is what was asked for
	}
	fmt.Fprint(a.Stderr, verdict.Text(v))
}

// variables are those of the command line and, for a Nomad job file, those that it declares
// and the environment has under NOMAD_VAR_ and their name, as nomad job run does.
func (a *app) variables(filename string, source []byte, given map[string]string) map[string]string {
	if format, err := detect.Format(filename, source); err != nil || format != jobfile.NomadHCL {
		return given
	}
	out := map[string]string{}
	for _, name := range nomadhcl.Declared(filename, source) {
		for _, kv := range a.Environ { // the last one counts
			if value, ok := strings.CutPrefix(kv, "NOMAD_VAR_"+name+"="); ok {
				out[name] = value
			}
		}
	}
	maps.Copy(out, given)
	return out
}

// pairs is a flag that takes name=value, and may be repeated.
type pairs map[string]string

// String implements pflag.Value.
func (pairs) String() string { return "" }

// Type implements pflag.Value.
func (pairs) Type() string { return "name=value" }

// Set implements pflag.Value.
func (p pairs) Set(text string) error {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return errors.New("want name=value")
	}
	p[name] = value
	return nil
}

// wait follows a job to its end, or all tasks of an array. A job of that id that was submitted before is
// another one.
func (a *app) wait(ctx context.Context, client *api.Client, job api.Job, before time.Time) error {
	pause, jobs := 250*time.Millisecond, []api.Job{job}
	look := func() ([]api.Job, error) {
		j, err := client.Job(ctx, job.ID)
		return []api.Job{j}, err
	}
	array := regexp.MustCompile(`^\d+_`).FindString(job.ID)
	if array != "" {
		pause = time.Second // all jobs are listed
		var known []api.Job
		look = func() (_ []api.Job, err error) {
			known, err = tasks(ctx, client, array, known)
			return known, err
		}
	}
	for show := a.beside().screen(); ; {
		now, err := look()
		switch {
		case err == nil && (len(now) == 0 || !before.IsZero() && now[0].Submitted.Equal(before)):
		case err == nil:
			jobs = now
		case ctx.Err() != nil || errors.Is(err, api.ErrUnavailable): // it may be restarting; the job goes on
		default:
			return err
		}
		if !a.json {
			show.update(jobs)
		}
		if !slices.ContainsFunc(jobs, func(j api.Job) bool { return !j.Ended }) {
			break
		}
		if driver.Pause(ctx, pause) != nil {
			return fmt.Errorf("%s goes on, and this command no longer waits for it: %w", job.ID, ctx.Err())
		}
	}
	var said any = jobs[0]
	if array != "" {
		said = jobs
	}
	if err := a.said(said, ""); err != nil { // people have seen it
		return err
	}
	if job, failed := tuning.First(jobs, func(j api.Job) bool { return j.State != "succeeded" }); failed {
		return fmt.Errorf("%w: %s ended as %s (%s): `pitchpipe logs %[2]s` shows its output", errJobFailed, job.ID, job.State,
			cmp.Or(job.Detail, fmt.Sprint("exit status ", job.ExitCode)))
	}
	return nil
}

// tasks are those of an array, whose ids begin so. Known are those of the look before: one that is listed no more is asked for.
func tasks(ctx context.Context, client *api.Client, array string, known []api.Job) ([]api.Job, error) {
	all, err := client.Jobs(ctx)
	if err != nil {
		return known, err
	}
	all = slices.DeleteFunc(all, func(j api.Job) bool { return !strings.HasPrefix(j.ID, array) })
	for _, j := range known {
		if slices.ContainsFunc(all, func(other api.Job) bool { return other.ID == j.ID }) {
			continue
		}
		if !j.Ended {
			now, err := client.Job(ctx, j.ID)
			if errors.Is(err, api.ErrNotFound) {
				now, err = j, nil
				now.Ended, now.State, now.Detail = true, string(driver.Lost), "its scheduler no longer knows it"
			}
			if j = now; err != nil {
				return known, err
			}
		}
		all = append(all, j)
	}
	return all, nil
}

// submitWith submits a job file as the caller, where the controller tunes everybody's jobs and
// submits none. The controller has checked the file. Where a job of that id has run before,
// before is when that one was submitted: until the controller has seen the new job, it answers
// for the old one. Change is what short jobs have shown to be better, only for Nomad; nil: no
// short jobs ran.
func (a *app) submitWith(ctx context.Context, client *api.Client, s api.Submission, change *driver.Change) (job api.Job, before time.Time, err error) {
	register, parse := a.submitToSlurm(command.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}), detect.For("slurm")
	if format, err := detect.Format(s.Filename, s.Source); err == nil && format == jobfile.NomadHCL {
		register, parse = a.submitToNomad(client, change), detect.For("nomad")
	}
	file, err := parse(s.Filename, s.Source, s.Variables)
	if err != nil {
		return api.Job{}, before, fmt.Errorf("%w: %w", errInvalid, err)
	}
	spec := driver.Spec{Filename: s.Filename, Source: s.Source, Variables: s.Variables, Dir: s.Dir, Env: s.Env}
	if spec.Off = s.Off && file.Stanza != nil; file.Stanza != nil && !spec.Off {
		// The controller can change it meanwhile at no cost. Slurm ends the wait by itself.
		spec.NotBefore = time.Now().Add(2 * time.Second)
	}
	known := map[string]time.Time{}
	if file.Format == jobfile.NomadHCL {
		jobs, err := client.Jobs(ctx)
		if err != nil { // the job is submitted all the same
			a.logger().Debug("earlier runs of the job are unknown", "err", err)
		}
		for _, j := range jobs {
			known[j.ID] = j.Submitted
		}
	}
	id, err := register(ctx, file, spec)
	if faults, ok := errors.AsType[jobfile.Errors](err); ok {
		err = faults // they say all, with the place of each
	} else if errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrConflict) || errors.Is(err, driver.ErrDenied) && file.Format != jobfile.NomadHCL {
		err = fmt.Errorf("%w: %w", errInvalid, err)
	}
	if err != nil {
		return api.Job{}, before, err
	}
	// From here on the job is there, whatever happens to the questions about it.
	unseen := api.Job{ID: string(id), Name: file.Name, State: string(driver.Pending), Submitted: time.Now()}
	before = known[unseen.ID]
	job, err = client.Job(ctx, unseen.ID)
	if err != nil {
		fmt.Fprintf(a.Stderr, "pitchpipe: job %s was submitted, and the controller does not show it: %v\n", id, err)
		return unseen, before, nil
	}
	if !before.IsZero() && job.Submitted.Equal(before) {
		return unseen, before, nil
	}
	return job, before, nil
}

// submitToSlurm submits by Slurm's commands, and says where a stanza has it that the job is
// moved and Slurm that it is not.
func (a *app) submitToSlurm(run command.Runner) func(context.Context, *jobfile.Job, driver.Spec) (driver.JobID, error) {
	return func(ctx context.Context, file *jobfile.Job, s driver.Spec) (driver.JobID, error) {
		id, err := slurm.Submit(ctx, run, file, s)
		if err != nil || file.Stanza == nil || s.Off || !slices.ContainsFunc(file.Stanza.Blocks, func(b *jobfile.Block) bool { return b.Type == "checkpoint" }) {
			return id, err
		}
		if moves, err := slurm.Moves(ctx, run, id); err == nil && !moves { // the controller says later what is unknown now
			fmt.Fprintf(a.Stderr, "pitchpipe: job %s is only observed once it runs: --no-requeue, SBATCH_NO_REQUEUE or the cluster's JobRequeue=0 "+
				"forbids a requeue; #SBATCH --requeue in its script allows it\n", id)
		}
		return id, nil
	}
}
