package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/verdict"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/nomadhcl"
)

func (a *app) run() *cobra.Command {
	var vars, env, short []string
	var wait, off bool
	var probes int
	var dir, request string
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Submit a job file",
		Long: "Submits an sbatch script or a Nomad job file. A file with errors is refused and nothing is\n" +
			"created. With --wait it shows the job's progress and exits with 1 if the job does not succeed.\n" +
			"The job's id goes to standard output. When its knobs can act, by the controller's scheduler and\n" +
			"policy, goes to standard error, as validate says it.\n\n" +
			"Whose environment a job gets: of Slurm's site, where each user submits for himself, that of this\n" +
			"command, as with sbatch. Of a controller that submits (a user's own, or the one with a scheduler in\n" +
			"it) only PATH, HOME, USER, LANG and TMPDIR of that controller: what a shell has loaded or exported is\n" +
			"not sent, so load modules in the script, or give variables with --env.\n\n" +
			"With --probe a Nomad job is first run shortly under its own settings and up to N others, one after\n" +
			"the other, each under an id of its own. --probe-env says how its work is made short, and is its\n" +
			"author's word that such runs do no harm, as to a checkpoint that is there. Then it is submitted once,\n" +
			"with the best of them where that is better beyond the noise. The same command goes on where it was\n" +
			"interrupted.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			variables, err := pairs("--var", vars)
			if err != nil {
				return err
			}
			environment, err := pairs("--env", env)
			if err != nil {
				return err
			}
			source, err := os.ReadFile(args[0])
			if err != nil {
				return fmt.Errorf("%w job file: %w", errInvalid, err)
			}
			variables = a.variables(args[0], source, variables)
			if dir == "" {
				dir = filepath.Dir(args[0])
			}
			if dir, err = absolute(dir); err != nil {
				return err
			}
			shorter, err := pairs("--probe-env", short)
			if err != nil {
				return err
			}
			if probes < 0 || (probes > 0) != (len(shorter) > 0) {
				return fmt.Errorf("%w --probe %d with %d --probe-env: want how many settings to try, and at least one variable that makes the work short", errInvalid, probes, len(shorter))
			}
			chosen := request != ""
			if chosen && probes > 0 {
				return fmt.Errorf("%w --request: short jobs are remembered by the job file and its variables", errInvalid)
			}
			if !chosen {
				var b [12]byte
				_, _ = rand.Read(b[:])
				request = hex.EncodeToString(b[:])
			}
			client := a.client()
			defer client.Close()
			s := api.Submission{
				Request: request, Filename: args[0], Source: source, Variables: variables, Dir: dir,
				Env: environment, Off: off,
			}
			var job api.Job
			var before time.Time
			if probes > 0 {
				job, before, err = a.probeAndSubmit(cmd.Context(), client, s, probing{probes, shorter})
			} else {
				job, err = client.Submit(cmd.Context(), s)
			}
			if errors.Is(err, api.ErrUsersSubmit) {
				if chosen {
					return fmt.Errorf("%w --request: the controller of this cluster submits no jobs, so that nobody knows requests by their names", errInvalid)
				}
				job, before, err = a.submit(cmd.Context(), client, s)
			}
			if err != nil {
				return err
			}
			if !off && !a.json {
				a.tell(cmd.Context(), client, s)
			}
			if !wait {
				if a.json {
					return a.printJSON(job)
				}
				a.printf("%s\n", job.ID)
				return nil
			}
			return a.wait(cmd.Context(), client, job, before)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&vars, "var", nil, "k=v, a variable of a Nomad job file, before NOMAD_VAR_k of the environment (repeatable)")
	f.StringArrayVar(&env, "env", nil, "K=V, added to the job's environment (repeatable)")
	f.BoolVar(&wait, "wait", false, "show progress until the job ended")
	f.BoolVar(&off, "off", false, "run this job untuned; it is still measured")
	f.IntVar(&probes, "probe", 0, "run the job shortly under its own and so many other settings first")
	f.StringArrayVar(&short, "probe-env", nil, "K=V, what makes the work of these runs short, such as EPOCHS=3 (repeatable)")
	f.StringVar(&dir, "dir", "", "the job's directory (default: that of FILE)")
	f.StringVar(&request, "request", "", "repeat a submission safely: the same id never creates a second job")
	return cmd
}

// tell says beside the output when the knobs of a job can act, where the controller knows.
func (a *app) tell(ctx context.Context, client *api.Client, s api.Submission) {
	v, err := client.Validate(ctx, api.Draft{Filename: s.Filename, Source: s.Source, Variables: s.Variables})
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

func pairs(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, kv := range list {
		k, v, ok := strings.Cut(kv, "=")
		if !ok || k == "" {
			return nil, fmt.Errorf("%w %s %q: want name=value", errInvalid, flag, kv)
		}
		out[k] = v
	}
	return out, nil
}

// wait follows a job to its end. What is told of one of that id that was submitted
// before is not about it.
func (a *app) wait(ctx context.Context, client *api.Client, job api.Job, before time.Time) error {
	show := a.screen()
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	for {
		j, err := client.Job(ctx, job.ID)
		switch {
		case err == nil && !before.IsZero() && j.Submitted.Equal(before):
		case err == nil:
			job = j
		case errors.Is(err, api.ErrUnavailable) && ctx.Err() == nil: // it may be restarting; the job goes on
		default:
			return err
		}
		if !a.json {
			show.update([]api.Job{job})
		}
		if job.Ended {
			break
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
	show.close()
	if a.json {
		if err := a.printJSON(job); err != nil {
			return err
		}
	}
	if job.State != "succeeded" {
		return fmt.Errorf("%w: %s ended as %s (exit %d) %s", errJobFailed, job.ID, job.State, job.ExitCode, job.Detail)
	}
	return nil
}
