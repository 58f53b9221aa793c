package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

// listen runs inside a job as its user and reports its epochs.
func (a *app) listen() *cobra.Command {
	var socket, pattern, done string
	var task int
	var inside bool
	var cfg progress.Config
	cmd := &cobra.Command{
		Use: "listen", Short: "Report a job's progress to the exporter, from inside the job",
		Long: "Reads the lines that a job writes and tells the node's exporter which epoch ended.\n" +
			"Schedulers start it inside the job as the job's user; a job may start it by itself too.\n" +
			"With --slurm it asks Slurm for the job's script and follows its output as the stanza says,\n" +
			"until the script ends; for a job without a stanza it ends at once.\n" +
			"It logs nothing unless --log.level is given.",
		Args:              cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.start(cmd) },
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if cfg.Logger, err = a.listenLog(cmd); err != nil {
				return err
			}
			if given := a.env(api.EnvSocket); given != "" && !cmd.Flags().Changed("socket") {
				socket = given
			}
			client := api.NewClient(socket)
			defer client.Close()
			if inside {
				return a.listenInJob(cmd.Context(), task, cfg.Logger, client.Report)
			}
			if cfg.Pattern, cfg.Done, err = patterns(pattern, done); err != nil {
				return err
			}
			if cfg.Pattern == nil && cfg.Done == nil {
				cfg.Pattern = regexp.MustCompile("") // Follow says what is missing
			}
			cfg.Whole = func() bool { return interrupted(cmd.Context()) }
			err = progress.Follow(cmd.Context(), cfg, client.Report) // it tries again: a missing exporter may come back
			if errors.Is(err, progress.ErrPattern) {
				return invalid("--pattern", err)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&socket, "socket", api.DefaultSocket, "the exporter's socket; where it is not given, what PITCHPIPE_EXPORTER says goes first")
	f.StringVar(&pattern, "pattern", "", "regular expression with groups epoch, total, loss, quality")
	f.StringVar(&done, "done", "", "regular expression of a line that says that the job saved a checkpoint")
	f.StringVar(&cfg.Path, "file", "", "file to read")
	f.Int64Var(&cfg.Offset, "offset", 0, "byte to begin at")
	f.IntVar(&cfg.Total, "total", 0, "total epochs, if no output line has them")
	f.BoolVar(&inside, "slurm", false, "ask Slurm what to read, from inside a job")
	f.IntVar(&task, "task", 0, "with --slurm: the process of the batch script; 0 = SLURM_TASK_PID")
	for _, name := range []string{"pattern", "done", "file", "offset", "total"} { // the job's stanza says what is read
		cmd.MarkFlagsMutuallyExclusive("slurm", name)
	}
	return settings(cmd, "log.level")
}

// interrupted reports whether an interrupt, and no other signal, ended a context of signal.NotifyContext. With it the
// supervisor says that the job succeeded, so that nothing which it wrote is cut off.
func interrupted(ctx context.Context) bool {
	err := context.Cause(ctx)
	return err != nil && strings.HasPrefix(err.Error(), os.Interrupt.String())
}

// listenInJob takes the job from the environment that Slurm gave it, and the process of its batch
// script from --task, else from there too.
func (a *app) listenInJob(ctx context.Context, task int, log *slog.Logger, report func(context.Context, api.Report) error) error {
	job := a.env("SLURM_JOB_ID")
	if job == "" || strings.Trim(job, "0123456789") != "" {
		return fmt.Errorf("%w: SLURM_JOB_ID %q: --slurm is for inside a job", errInvalid, job)
	}
	if pid, err := strconv.Atoi(a.env("SLURM_TASK_PID")); task <= 0 && err == nil {
		task = pid
	}
	if task <= 0 {
		return fmt.Errorf("%w: SLURM_TASK_PID %q: --slurm is for inside a job", errInvalid, a.env("SLURM_TASK_PID"))
	}
	return inJob{
		id: job, array: a.env("SLURM_ARRAY_JOB_ID"), pid: task, slurm: command.Exec{}, report: report, log: log,
	}.run(ctx)
}

// patterns compiles those of epochs and of saved checkpoints; nil where there is none.
func patterns(epoch, saved string) (pattern, done *regexp.Regexp, err error) {
	var faulty error
	if epoch != "" {
		pattern, err = regexp.Compile(epoch)
	}
	if saved != "" {
		done, faulty = regexp.Compile(saved)
	}
	return pattern, done, cmp.Or(invalid("pattern", err), invalid("pattern of a saved checkpoint", faulty))
}

// listenLog is silent unless a level is set: no one reads a log next to a job.
func (a *app) listenLog(cmd *cobra.Command) (*slog.Logger, error) {
	flag := cmd.Flags().Lookup("log.level")
	if !flag.Changed {
		return slog.New(slog.DiscardHandler), nil
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(flag.Value.String())); err != nil {
		return nil, invalid("--log.level", err)
	}
	return slog.New(slog.NewTextHandler(a.Stderr, &slog.HandlerOptions{Level: level})), nil
}

// supervise is started by the embedded scheduler, never by hand.
func (a *app) supervise() *cobra.Command {
	return &cobra.Command{
		Use: "supervise", Short: "Run one attempt of a job (started by the local scheduler)", Hidden: true,
		DisableFlagParsing: true,
		PersistentPreRunE:  func(cmd *cobra.Command, _ []string) error { return a.start(cmd) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if code := supervise.Main(cmd.Context(), args); code != 0 {
				return fmt.Errorf("%w: supervisor status %d", errShown, code)
			}
			return nil
		},
	}
}
