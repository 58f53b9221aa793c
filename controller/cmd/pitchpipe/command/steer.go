package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/slurm/check"
	slurmcommand "pitchpipe/driver/slurm/command"
)

const scopeUse = "[cluster|partition NAME|user NAME|job ID]"

func scope(args []string) (scope, name string, err error) {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "cluster":
		return "cluster", "", nil
	case len(args) == 2 && args[0] != "cluster":
		return args[0], args[1], nil
	}
	return "", "", fmt.Errorf("%w scope: want cluster, partition NAME, user NAME or job ID", errInvalid)
}

func (a *app) scopes(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []cobra.Completion{"cluster", "partition", "user", "job"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == "job":
		return a.jobIDs(false, notEnded)(cmd, nil, word)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}

func (a *app) pause() *cobra.Command {
	var why string
	var list bool
	cmd := &cobra.Command{
		Use: "pause " + scopeUse, Short: "Stop all changes by the tuner in a scope",
		Long: "Nothing is changed in the scope until `pitchpipe resume`. Jobs run on as they are. A change that\n" +
			"has already asked a job to save is completed, so that no job stays held. A pause survives restarts.",
		Args: cobra.MaximumNArgs(2), ValidArgsFunction: a.scopes,
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			s, name, err := scope(args)
			if !list {
				if err == nil {
					err = client.Pause(ctx, api.Pause{Scope: s, Name: name, Why: why})
				}
				if err != nil {
					return err
				}
			}
			ps, err := client.Pauses(ctx)
			if !list && s == "user" {
				jobs, unseen := client.Jobs(ctx)
				if unseen == nil && !slices.ContainsFunc(jobs, func(j api.Job) bool { return j.Owner == name }) {
					a.beside().printf("warning: no job of user %s is known here; the pause holds for later ones\n", name)
				}
			}
			return a.answer(err, ps, "%s", pauseList(ps))
		}),
	}
	cmd.Flags().StringVar(&why, "why", "", "a reason for others to read")
	cmd.Flags().BoolVar(&list, "list", false, "only list the pauses in force")
	return cmd
}

func pauseList(all []api.Pause) string {
	lines := tuning.Each(all, func(p api.Pause) string {
		return report.Legible("paused: "+words(p.Scope, p.Name, "by", p.By, p.Why)) + "\n"
	})
	return strings.Join(lines, "")
}

// words has one blank between the words that are there.
func words(all ...string) string {
	return strings.Join(slices.DeleteFunc(all, func(w string) bool { return w == "" }), " ")
}

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume " + scopeUse, Short: "End a pause", Args: cobra.MaximumNArgs(2), ValidArgsFunction: a.scopes,
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			s, name, err := scope(args)
			if err == nil {
				err = client.Resume(ctx, s, name)
			}
			return a.answer(err, map[string]string{"resumed": s, "name": name}, "resumed: %s\n", words(s, name))
		}),
	}
}

func (a *app) off() *cobra.Command {
	return &cobra.Command{
		Use: "off JOB", Short: "Switch tuning off for a job of yours", Args: cobra.ExactArgs(1), ValidArgsFunction: a.jobIDs(true, notEnded),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			// The file comes first: it works without a controller that can be trusted. A machine
			// without Slurm has no such configuration.
			var left error
			if text, err := os.ReadFile(check.PrologConfPlace); err == nil && os.Getuid() != 0 && a.cfg.Driver != "nomad" {
				home, err := os.UserHomeDir()
				left = errors.Join(err, leaveOff(check.ReadPrologConf(string(text)).SettingsDir(check.Owner, home), args[0]))
			}
			return a.answer(errors.Join(client.Off(ctx, args[0]), left), map[string]string{"off": args[0]}, "tuning is off for %s; only a change that has already begun is completed\n", args[0])
		}),
	}
}

// leaveOff leaves the file in a user's folder of settings that says that a job is off. The
// task prolog obeys it, whatever the controller writes.
func leaveOff(dir, job string) error {
	if dir == "" || filepath.Base(job) != job {
		return nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as the controller of a user makes it
		return err //nolint:wrapcheck // it names the folder
	}
	return os.WriteFile(filepath.Join(dir, job+".off"), nil, 0o644) //nolint:gosec,wrapcheck // nothing is in it
}

func (a *app) stop() *cobra.Command {
	return &cobra.Command{
		Use: "stop JOB", Short: "Cancel a job of yours", Args: cobra.ExactArgs(1), ValidArgsFunction: a.jobIDs(true, notEnded),
		RunE: a.with(func(ctx context.Context, client *api.Client, args []string) error {
			before, unseen := client.Job(ctx, args[0])
			err := client.Stop(ctx, args[0]) // whatever was seen: a new run of that id may have begun since
			switch {
			case errors.Is(err, api.ErrUsersStop): // the controller of a Slurm site has no right to
				run := slurmcommand.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}
				_, err = run.Run(ctx, slurmcommand.Call{Name: "scancel", Args: []string{args[0]}, Effect: true})
			case errors.Is(err, api.ErrUsersDeregister):
				err = a.stopInNomad(ctx, driver.JobID(args[0]))
			}
			text := "stopping " + args[0]
			if unseen == nil && before.Ended {
				text = args[0] + " has already ended: " + before.State
			}
			return a.answer(err, map[string]string{"stopped": args[0]}, "%s\n", text)
		}),
	}
}
