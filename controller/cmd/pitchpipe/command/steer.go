package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/driver/slurm/check"
)

// scope reads "[cluster|partition NAME|user NAME|job ID]".
func scope(args []string) (scope, name string, err error) {
	switch {
	case len(args) == 0, len(args) == 1 && args[0] == "cluster":
		return "cluster", "", nil
	case len(args) == 2 && args[0] != "cluster":
		return args[0], args[1], nil
	}
	return "", "", fmt.Errorf("%w scope: want cluster, partition NAME, user NAME or job ID", errInvalid)
}

func (a *app) pause() *cobra.Command {
	var why string
	var list bool
	cmd := &cobra.Command{
		Use: "pause [cluster|partition NAME|user NAME|job ID]", Short: "Stop all effects of the tuner in a scope",
		Long: "Nothing is changed in the scope until `pitchpipe resume`. Jobs go on as they are; a change that\n" +
			"had already stopped a job is finished, so that nothing is left held. A pause survives restarts.",
		Args: cobra.MaximumNArgs(2), ValidArgsFunction: a.scopes,
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			if !list {
				s, name, err := scope(args)
				if err != nil {
					return err
				}
				if err := client.Pause(cmd.Context(), api.Pause{Scope: s, Name: name, Why: why}); err != nil {
					return err
				}
			}
			ps, err := client.Pauses(cmd.Context())
			if err != nil {
				return err
			}
			if a.json {
				return a.printJSON(ps)
			}
			for _, p := range ps {
				a.printf("paused: %s %s by %s %s\n", p.Scope, p.Name, p.By, p.Why)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&why, "why", "", "a reason that others read")
	cmd.Flags().BoolVar(&list, "list", false, "only list the pauses in force")
	return cmd
}

func (a *app) resume() *cobra.Command {
	return &cobra.Command{
		Use: "resume [cluster|partition NAME|user NAME|job ID]", Short: "End a pause", Args: cobra.MaximumNArgs(2),
		ValidArgsFunction: a.scopes,
		RunE: func(cmd *cobra.Command, args []string) error {
			s, name, err := scope(args)
			if err != nil {
				return err
			}
			client := a.client()
			defer client.Close()
			if err := client.Resume(cmd.Context(), s, name); err != nil {
				return err
			}
			return a.said(map[string]string{"resumed": s, "name": name}, "resumed: %s %s\n", s, name)
		},
	}
}

func (a *app) off() *cobra.Command {
	return &cobra.Command{
		Use: "off JOB", Short: "Switch tuning off for a job of yours", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.jobIDs(true, notEnded),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			// The file comes first: it is for the case that the controller is not to be trusted.
			var left error
			if text, err := os.ReadFile(check.PrologConfPlace); err == nil && a.cfg.Driver == "slurm" && os.Getuid() != 0 {
				home, err := os.UserHomeDir()
				left = errors.Join(err, leaveOff(check.ReadPrologConf(string(text)).SettingsDir(check.Owner, home), args[0]))
			}
			if err := errors.Join(client.Off(cmd.Context(), args[0]), left); err != nil {
				return err
			}
			return a.said(map[string]string{"off": args[0]}, "tuning is off for %s; it runs on as it is\n", args[0])
		},
	}
}

// leaveOff leaves the file in a user's folder of settings that says that a job is off. The
// task prolog believes it, whatever the controller writes.
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
		Use: "stop JOB", Short: "Cancel a job of yours", Args: cobra.ExactArgs(1),
		ValidArgsFunction: a.jobIDs(true, notEnded),
		RunE: func(cmd *cobra.Command, args []string) error {
			client := a.client()
			defer client.Close()
			if err := client.Stop(cmd.Context(), args[0]); err != nil {
				return err
			}
			return a.said(map[string]string{"stopped": args[0]}, "stopping %s\n", args[0])
		},
	}
}

// said answers in JSON or in words.
func (a *app) said(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	a.printf(format, args...)
	return nil
}
