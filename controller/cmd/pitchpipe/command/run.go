package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
)

func (a *app) run() *cobra.Command {
	var vars, env []string
	var wait, off bool
	var dir, request string
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Submit a job file",
		Long: "Submits an sbatch script or a Nomad job file. A file with errors is refused and nothing is\n" +
			"created. With --wait it shows the job's progress and exits with 1 if the job does not succeed.",
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
			if dir == "" {
				dir = filepath.Dir(args[0])
			}
			if dir, err = absolute(dir); err != nil {
				return err
			}
			chosen := request != ""
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
			job, err := client.Submit(cmd.Context(), s)
			var before time.Time
			if errors.Is(err, api.ErrUsersSubmit) {
				if chosen {
					return fmt.Errorf("%w --request: the controller of this cluster submits no jobs, so that nobody knows requests by their names", errInvalid)
				}
				job, before, err = a.submit(cmd.Context(), client, s)
			}
			if err != nil {
				return err
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
	f.StringArrayVar(&vars, "var", nil, "k=v, a variable of a Nomad job file (repeatable)")
	f.StringArrayVar(&env, "env", nil, "K=V, added to the job's environment (repeatable)")
	f.BoolVar(&wait, "wait", false, "show progress until the job ended")
	f.BoolVar(&off, "off", false, "run this job untuned; it is still measured")
	f.StringVar(&dir, "dir", "", "the job's directory (default: that of FILE)")
	f.StringVar(&request, "request", "", "repeat a submission safely: the same id never creates a second job")
	return cmd
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
