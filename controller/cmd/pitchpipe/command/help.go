package command

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitchpipe/controller/config"
)

const exitHelp = `Exit status:
  0  done
  1  the command failed, or the job that it waited for did
  2  a job file, a stanza, a flag or the configuration is wrong; nothing was changed
  3  the controller does not answer
  4  only the job's owner or root may do this
  5  there is no such job or search`

// exitStatusHelp is a help topic: a command that does nothing.
func exitStatusHelp() *cobra.Command {
	return &cobra.Command{Use: "exit-status", Short: "What the exit status means", Long: exitHelp}
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.start(cmd) },
		RunE: func(*cobra.Command, []string) error {
			return a.said(map[string]string{"version": a.Version, "go": runtime.Version()}, "pitchpipe version %s\n", a.Version)
		},
	}
}

// help prints the help of a command: its own flags, and no flag of another one.
func help(cmd *cobra.Command, groups []group) {
	out := cmd.OutOrStdout()
	if !cmd.HasParent() {
		fmt.Fprint(out, overview(cmd, groups))
		return
	}
	fmt.Fprintf(out, "%s.\n", cmd.Short)
	if cmd.Long != "" {
		fmt.Fprintf(out, "\n%s\n", cmd.Long)
	}
	if cmd.Runnable() {
		flags := ""
		if cmd.HasAvailableLocalFlags() {
			flags = " [flags]"
		}
		fmt.Fprintf(out, "\nUsage: %s%s%s\n", cmd.CommandPath(), strings.TrimPrefix(cmd.Use, cmd.Name()), flags)
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintln(out)
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() {
				fmt.Fprintf(out, "  %-12s %s\n", c.Name(), c.Short)
			}
		}
	}
	if cmd.HasAvailableLocalFlags() {
		fmt.Fprintf(out, "\n%s", cmd.LocalFlags().FlagUsagesWrapped(100))
	}
}

// overview fits the 24 lines of a small terminal: each group starts on the line of its first
// command, and the last ones, which few users need, are one line each.
func overview(root *cobra.Command, groups []group) string {
	var b strings.Builder
	b.WriteString(root.Short + "\nUsage: pitchpipe COMMAND [--json] [--config FILE] [--socket PATH] [flags]\n\n")
	for _, g := range groups {
		title := g.title
		var names []string
		for _, c := range g.commands {
			switch {
			case c.Hidden:
			case g.brief:
				names = append(names, c.Name())
			default:
				fmt.Fprintf(&b, "%-10s%-12s%s\n", title, c.Name(), c.Short)
				title = ""
			}
		}
		if g.brief {
			fmt.Fprintf(&b, "%-10s%s\n", title, strings.Join(names, ", "))
		}
	}
	b.WriteString("See pitchpipe help COMMAND, and pitchpipe help completion for your shell.\n")
	return b.String()
}

// settings makes the keys visible by which a command is configured: those with one of the
// prefixes.
func settings(cmd *cobra.Command, prefixes ...string) *cobra.Command {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	config.Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(f.Name, p) }) {
			cmd.Flags().AddFlag(f)
		}
	})
	return cmd
}
