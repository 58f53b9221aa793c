package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/evaluate/result"
	"pitchpipe/driver/jobfile"
)

// World is everything that a command touches outside of itself.
type World struct {
	Args    []string
	Environ []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	Version string // that --version prints
}

// The exit statuses.
const (
	ExitOK          = 0
	ExitFailed      = 1 // the command or the job that it waited for failed
	ExitInvalid     = 2 // a job file, a stanza, a flag or the configuration is wrong
	ExitUnavailable = 3 // the controller cannot be reached
	ExitDenied      = 4 // only the job's owner or root may do this
	ExitNotFound    = 5 // there is no such job
)

const exitHelp = `Exit status:
  0  done
  1  the command failed, or the job that it waited for did
  2  a job file, a stanza, a flag or the configuration is wrong; nothing was changed
  3  the controller cannot be reached
  4  only the job's owner or root may do this
  5  there is no such job`

var (
	errInvalid   = errors.New("invalid")
	errJobFailed = errors.New("the job did not succeed")
	// errShown ends a command whose output has already said what is wrong.
	errShown = errors.New("already said")
)

// app is what the commands share.
type app struct {
	World
	json bool
	file string
	cfg  config.Config
	// began is set once the command line is understood: errors before are in it.
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
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if !a.began {
		// cobra spreads its suggestions over lines.
		err = fmt.Errorf("%w command line: %s", errInvalid, strings.Join(strings.Fields(err.Error()), " "))
	}
	if !errors.Is(err, errShown) {
		fmt.Fprintln(w.Stderr, "pitchpipe: "+strings.ReplaceAll(err.Error(), "\n", "\npitchpipe: "))
	}
	return exitStatus(err)
}

func exitStatus(err error) int {
	var faults jobfile.Errors
	switch {
	case errors.Is(err, errJobFailed):
		return ExitFailed
	case errors.Is(err, errInvalid), errors.Is(err, config.ErrInvalid), errors.Is(err, api.ErrInvalid), errors.Is(err, records.ErrInvalid), errors.Is(err, result.ErrInput),
		errors.As(err, &faults):
		return ExitInvalid
	case errors.Is(err, api.ErrUnavailable):
		return ExitUnavailable
	case errors.Is(err, api.ErrDenied):
		return ExitDenied
	case errors.Is(err, api.ErrNotFound):
		return ExitNotFound
	}
	return ExitFailed
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use: "pitchpipe", Version: a.Version,
		Short: "Gives batch jobs their pitch: profiles early epochs and resubmits with better settings",
		Long: "Pitchpipe listens to the first epochs of a batch job, knows its kind by its counters,\n" +
			"and resubmits it with the cores, memory, threads and hyperparameters that suit it.\n\n" + exitHelp,
		SilenceUsage: true, SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.configure(cmd) },
	}
	flags := root.PersistentFlags()
	config.Flags(flags)
	flags.StringVar(&a.file, "config", config.File(a.Environ), "configuration file")
	flags.BoolVar(&a.json, "json", false, "print JSON")
	root.AddCommand(
		a.controller(), a.run(), a.status(), a.explain(), a.history(), a.validate(), a.knowledge(), a.report(),
		a.pause(), a.resume(), a.off(), a.stop(), a.logs(), a.demo(), a.slurm(), a.broker(), a.listen(), a.supervise(), a.evaluate(), a.record(),
	)
	return root
}

func (a *app) configure(cmd *cobra.Command) error {
	if err := cmd.ValidateRequiredFlags(); err != nil { // else only asked after this
		return err
	}
	a.began = true
	if parent := cmd.Parent(); parent != nil && parent.Name() == "completion" {
		return nil
	}
	switch cmd.Name() {
	case "validate":
		// It needs no controller. A configuration with faults is not its affair: then the
		// defaults count.
		cfg, err := config.Load(cmd.Flags(), a.Environ, a.file)
		if f := cmd.Flags().Lookup("driver"); err != nil && f != nil && f.Changed {
			return fmt.Errorf("%w configuration: %w", errInvalid, err)
		}
		a.cfg = cfg
		return nil
	case "supervise", "listen", cobra.ShellCompRequestCmd, cobra.ShellCompNoDescRequestCmd:
		return nil // they run inside jobs or without a controller: its configuration is not theirs
	}
	var err error
	if a.cfg, err = config.Load(cmd.Flags(), a.Environ, a.file); err != nil {
		return fmt.Errorf("%w configuration: %w", errInvalid, err)
	}
	return nil
}

func (a *app) client() *api.Client { return api.NewClient(a.cfg.Socket) }

func (a *app) logger() *slog.Logger {
	opts := &slog.HandlerOptions{Level: a.cfg.Log.Level}
	if a.cfg.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(a.Stderr, opts))
	}
	return slog.New(slog.NewTextHandler(a.Stderr, opts))
}

func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.Stdout, format, args...) }

// terminal tells whether the output is one, and how wide it is.
func (a *app) terminal() (width int, ok bool) {
	f, isFile := a.Stdout.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = 80
	}
	return width, true
}

// colour wraps text in an ANSI colour where the output is a terminal and the
// user has not asked for none.
func (a *app) colour(code, text string) string {
	if _, ok := a.terminal(); !ok || a.env("NO_COLOR") != "" {
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
