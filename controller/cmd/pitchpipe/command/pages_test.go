package command

import (
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// page is the reference of the commands, made from the commands themselves.
func page(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The commands of pitchpipe\n\n" +
		"This page is generated from the commands: `go test ./controller/cmd/pitchpipe/command -update`.\n\n" +
		exitHelp[:strings.IndexByte(exitHelp, '\n')] + "\n\n| status | meaning |\n|---|---|\n")
	for line := range strings.Lines(exitHelp[strings.IndexByte(exitHelp, '\n')+1:]) {
		code, meaning, _ := strings.Cut(strings.TrimSpace(line), "  ")
		fmt.Fprintf(&b, "| %s | %s |\n", code, meaning)
	}
	b.WriteString("\n| command | what it does |\n|---|---|\n")
	for _, c := range leaves(root) {
		if !c.Hidden {
			name := strings.TrimPrefix(c.CommandPath(), "pitchpipe ")
			fmt.Fprintf(&b, "| [`%s`](#pitchpipe-%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), c.Short)
		}
	}
	for _, c := range leaves(root) {
		if !c.Hidden {
			section(&b, c)
		}
	}
	b.WriteString("\n## Shell completion\n\n`pitchpipe completion bash` prints a completion script; zsh, fish and powershell have theirs.\n")
	b.WriteString("\n## Flags of every command\n\n| flag | meaning |\n|---|---|\n| `--config string` | configuration file |\n| `--json` | print JSON |\n\n" +
		"Every command also accepts each key of the [configuration](../../config/REFERENCE.md) as a flag; a user's\n" +
		"command needs none: it finds the controller at its usual place, or by `--socket`.\n")
	return b.String()
}

// leaves are the commands that do something: those of a group stand for it.
func leaves(root *cobra.Command) []*cobra.Command {
	var out []*cobra.Command
	for _, c := range root.Commands() {
		if c.HasSubCommands() {
			out = append(out, leaves(c)...)
		} else if c.Runnable() {
			out = append(out, c)
		}
	}
	return out
}

func section(b *strings.Builder, c *cobra.Command) {
	usage := c.CommandPath() + strings.TrimPrefix(c.Use, c.Name())
	if c.HasAvailableLocalFlags() {
		usage += " [flags]"
	}
	fmt.Fprintf(b, "\n## %s\n\n    %s\n\n%s.\n", c.CommandPath(), usage, c.Short)
	if c.Long != "" {
		fmt.Fprintf(b, "\n%s\n", c.Long)
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n")
		flags(b, c.LocalFlags())
	}
}

func flags(b *strings.Builder, set *pflag.FlagSet) {
	b.WriteString("| flag | meaning |\n|---|---|\n")
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f) // as --help says it
		fmt.Fprintf(b, "| `%s` | %s |\n", strings.TrimSpace("--"+f.Name+" "+kind), strings.ReplaceAll(usage, "|", `\|`))
	})
}

func TestCommandsPage(t *testing.T) {
	t.Parallel()
	a := &app{World: World{Stdout: io.Discard, Stderr: io.Discard}}
	got := page(a.root())
	const path = "../COMMANDS.md"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(have), got); diff != "" {
		t.Errorf("%s (-have +want):\n%s", path, diff)
	}
}

func TestEveryCommandExplainsItself(t *testing.T) {
	t.Parallel()
	a := &app{World: World{Stdout: io.Discard, Stderr: io.Discard}}
	for _, c := range leaves(a.root()) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") || c.RunE == nil || c.Args == nil && c.Name() != "status" && !c.DisableFlagParsing {
			t.Errorf("%s: short %q, runs %v, checks its arguments %v", c.Name(), c.Short, c.RunE != nil, c.Args != nil)
		}
		if out := shown(c); strings.Count(out, "\n") > 24 && slices.Contains(users(), c.Name()) {
			t.Errorf("the help of %s has %d lines:\n%s", c.Name(), strings.Count(out, "\n"), out)
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Usage == "" {
				t.Errorf("%s --%s has no explanation", c.Name(), f.Name)
			}
		})
	}
}

// users are the commands of everybody; those of administrators and researchers have more flags.
func users() []string {
	return []string{"run", "validate", "status", "logs", "stop", "off", "explain", "history", "report", "knowledge", "config", "pause", "resume", "demo", "preview", "results", "best", "importance", "export", "plot"}
}

// shown is the help of a command.
func shown(c *cobra.Command) string {
	var b strings.Builder
	c.SetOut(&b)
	_ = c.Help() // a Builder takes everything
	return b.String()
}

func TestTheHelpFitsATerminal(t *testing.T) {
	t.Parallel()
	a := &app{World: World{Stdout: io.Discard, Stderr: io.Discard}}
	text := shown(a.root())
	if n := strings.Count(text, "\n"); n > 24 {
		t.Errorf("%d lines, want at most 24:\n%s", n, text)
	}
	for line := range strings.Lines(text) {
		if len(line) > 81 {
			t.Errorf("%d characters: %s", len(line), line)
		}
	}
}

func TestTheExitStatusesAreThoseOfTheHelp(t *testing.T) {
	t.Parallel()
	for code := range ExitNotFound + 1 {
		if !strings.Contains(exitHelp, fmt.Sprintf("\n  %d  ", code)) {
			t.Errorf("the help does not explain the exit status %d", code)
		}
	}
}
