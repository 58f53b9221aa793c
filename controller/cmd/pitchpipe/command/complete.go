package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
)

// completionPatience is how long a shell waits for job ids: no longer than a
// person at the Tab key does.
const completionPatience = 500 * time.Millisecond

// jobIDs completes ids of jobs from a running controller; without one, or where
// it is slow, there is nothing to complete and nothing is said.
func (a *app) jobIDs(once bool, worth func(api.Job) bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if once && len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		for _, j := range a.jobs(cmd) {
			if !slices.Contains(args, j.ID) && worth(j) && strings.HasPrefix(j.ID, word) {
				out = append(out, cobra.CompletionWithDesc(j.ID, printable(j.Name)+", "+j.State))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// printable keeps a name that a user chose from ending the line or the column.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// jobs asks a running controller, the newest job first.
func (a *app) jobs(cmd *cobra.Command) []api.Job {
	// A completion skips configure, whose errors would end up in the shell.
	cfg, err := config.Load(cmd.Flags(), a.Environ, a.file)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionPatience)
	defer cancel()
	client := api.NewClient(cfg.Socket)
	defer client.Close()
	jobs, err := client.Jobs(ctx)
	if err != nil {
		return nil
	}
	slices.Reverse(jobs)
	return jobs
}

func anyJob(api.Job) bool     { return true }
func notEnded(j api.Job) bool { return !j.Ended }

// scopes completes what may be paused and resumed.
func (a *app) scopes(cmd *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return []cobra.Completion{"cluster", "partition", "user", "job"}, cobra.ShellCompDirectiveNoFileComp
	case len(args) == 1 && args[0] == "job":
		return a.jobIDs(false, notEnded)(cmd, nil, word)
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
