package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
)

// World is everything that a command touches outside of itself.
type World struct {
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Version string
}

// The exit statuses.
const (
	ExitOK          = 0
	ExitFailed      = 1 // the command or the job that it waited for failed
	ExitInvalid     = 2 // a job file, a stanza, a flag or the configuration is wrong
	ExitUnavailable = 3 // the controller does not answer
	ExitDenied      = 4 // only the job's owner or root may do this
	ExitNotFound    = 5 // there is no such job or search
)

var (
	errInvalid   = errors.New("invalid")
	errJobFailed = errors.New("the job did not succeed")
	// errShown ends a command whose output already says what is wrong.
	errShown = errors.New("already said")
)

// invalid says what of a command line, a file or the configuration is wrong; nil: nothing is.
func invalid(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w %s: %w", errInvalid, what, err)
}

type app struct {
	World
	json bool
	file string // of the configuration; empty = none
	cfg  config.Config
	// began is set once the command line is valid. An error before that is one of the command line.
	began bool
}

// Run executes one command line and returns its exit status.
func Run(ctx context.Context, w World) int {
	a := &app{World: w}
	root := a.root()
	root.SetArgs(w.Args)
	root.SetIn(w.Stdin)
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitOK
	}
	if !a.began {
		// cobra puts each suggestion on its own line.
		text := strings.Join(strings.Fields(err.Error()), " ")
		if strings.Contains(text, " arg(s)") {
			text += "; want " + cmd.UseLine()
		}
		err = fmt.Errorf("%w command line: %s", errInvalid, text)
	}
	if !errors.Is(err, errShown) {
		fmt.Fprintln(w.Stderr, "pitchpipe: "+strings.ReplaceAll(err.Error(), "\n", "\npitchpipe: "))
	}
	return exitStatus(err)
}

func exitStatus(err error) int {
	var faults jobfile.Errors
	if !errors.Is(err, errJobFailed) && errors.As(err, &faults) {
		return ExitInvalid
	}
	for status, marks := range [][]error{
		ExitFailed:      {errJobFailed},
		ExitInvalid:     {errInvalid, config.ErrInvalid, api.ErrInvalid, evaluate.ErrInvalid, evaluate.ErrInput, joblog.ErrInvalid, simulate.ErrInput},
		ExitUnavailable: {api.ErrUnavailable},
		ExitDenied:      {api.ErrDenied, driver.ErrDenied},
		ExitNotFound:    {api.ErrNotFound},
	} {
		if slices.ContainsFunc(marks, func(mark error) bool { return errors.Is(err, mark) }) {
			return status
		}
	}
	return ExitFailed
}

type group struct {
	title    string
	brief    bool // names are enough
	commands []*cobra.Command
}

func (a *app) groups() []group {
	return []group{
		{"Jobs", false, []*cobra.Command{a.run(), a.search(), a.validate(), a.status(), a.logs(), a.stop(), a.off()}},
		{"Insight", false, []*cobra.Command{a.explain(), a.advice(), a.history(), a.report(), a.knowledge()}},
		{"Site", false, []*cobra.Command{a.controller(), a.broker(), a.config(), a.slurm(), a.pause(), a.resume()}},
		{"Research", true, []*cobra.Command{a.demo(), a.evaluate(), a.record(), a.simulate(), a.durations(), a.whatif()}},
		{"Other", true, []*cobra.Command{a.version(), a.listen(), a.supervise(), exitStatusHelp()}},
	}
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "pitchpipe", Version: a.Version, SilenceUsage: true, SilenceErrors: true,
		Short:             "Pitchpipe profiles the first epochs of a batch job and gives it better settings.",
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
	}
	// Every command accepts every key, so that a command line can be reused. The help shows a
	// key only at the command that it configures.
	flags := root.PersistentFlags()
	config.Flags(flags)
	flags.VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "socket" })
	flags.StringVar(&a.file, "config", config.File(a.Environ), "configuration file")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	groups := a.groups()
	for _, g := range groups {
		root.AddCommand(g.commands...)
	}
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { help(cmd, groups) })
	root.SetUsageFunc(func(cmd *cobra.Command) error { help(cmd, groups); return nil })
	return root
}

// configure reads the configuration. A command that works without it has its own
// PersistentPreRunE.
func (a *app) configure(cmd *cobra.Command) error {
	if err := a.start(cmd); err != nil || cmd.HasParent() && cmd.Parent().Name() == "completion" {
		return err
	}
	cfg, err := config.Load(cmd.Flags(), a.Environ, a.file)
	a.cfg = cfg
	return invalid("configuration", err)
}

// start marks the end of the command line's checks; cobra makes two of them too late.
func (a *app) start(cmd *cobra.Command) error {
	if err := errors.Join(cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
		return err
	}
	a.began = true
	return nil
}

func (a *app) client() *api.Client { return api.NewClient(controllerSocket(a.cfg)) }

// controllerSocket is the socket that was named, else the first usual place that has one.
func controllerSocket(cfg config.Config) string {
	for _, path := range []string{cfg.Socket, "/run/pitchpipe/controller.sock", "/run/pitchpipe-site/controller.sock"} {
		if _, err := os.Stat(path); !os.IsNotExist(err) && cfg.Given["socket"] == "" {
			return path
		}
	}
	return cfg.Socket
}

func (a *app) logger() *slog.Logger {
	opts := &slog.HandlerOptions{Level: a.cfg.Log.Level}
	if a.cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, opts))
}

// said prints v as JSON under --json, else in words.
func (a *app) said(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	_, err := fmt.Fprintf(a.Stdout, format, args...)
	return err
}

// answer is said, unless what was to be said or done failed.
func (a *app) answer(err error, v any, format string, args ...any) error {
	if err != nil {
		return err
	}
	return a.said(v, format, args...)
}

// family makes a command that only has subcommands.
func family(cmd *cobra.Command, of ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.NoArgs // so that a misspelt command is an error
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	cmd.AddCommand(of...)
	return cmd
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func texts[T ~string](words []T) []string {
	return tuning.Each(words, func(w T) string { return string(w) })
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.Stdout, format, args...) }

// beside is a command that prints to the errors' stream: the output belongs to its result.
func (a *app) beside() *app {
	out := *a
	out.Stdout = a.Stderr
	return &out
}

func (a *app) terminal() (width, height int, ok bool) {
	f, isFile := a.Stdout.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	return width, height, true
}

// colour wraps text in an ANSI colour on a terminal, unless NO_COLOR is set.
func (a *app) colour(code, text string) string {
	if _, _, ok := a.terminal(); !ok || a.env("NO_COLOR") != "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (a *app) env(name string) string {
	for _, kv := range a.Environ {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}
