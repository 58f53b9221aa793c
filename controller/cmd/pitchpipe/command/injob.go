package command

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/jobfile/sbatch"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

// errNothing means that the job prints nothing that a listener could report.
var errNothing = errors.New("nothing to listen to")

// inJob listens inside a job of Slurm, as its user: it asks Slurm what the job is, and
// follows what its batch script writes until that ends.
type inJob struct {
	id, array string // the numbers of the job and of its array
	pid       int    // of the batch script, 0 = not known
	slurm     command.Runner
	report    func(context.Context, api.Report) error
	log       *slog.Logger
}

// run returns when the batch script has ended and every report is sent.
func (l inJob) run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	script, err := progress.FindScript(l.pid)
	if err != nil {
		return fmt.Errorf("batch script of job %s: %w", l.id, err)
	}
	defer func() { _ = script.Close() }() // nothing was written
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer stop()
		if err := script.Wait(ctx); ctx.Err() == nil {
			return err
		}
		return nil
	})
	group.Go(func() error {
		defer stop()
		return l.follow(ctx, script)
	})
	return group.Wait()
}

func (l inJob) follow(ctx context.Context, script *progress.Script) error {
	// The place first: what the script writes until Slurm has answered counts.
	out := progress.Config{Logger: l.log}
	var err error
	if out.Path, out.Offset, err = script.Output(ctx); err != nil && !errors.Is(err, progress.ErrHidden) {
		return err
	}
	job, policy, err := l.ask(ctx)
	if errors.Is(err, errNothing) {
		l.log.DebugContext(ctx, "not listening", "job", l.id, "reason", err)
		return nil
	}
	if err != nil {
		return err
	}
	if out.Path == "" {
		out.Path, out.Offset = job.StdOut, script.Begin(job.StdOut)
	}
	files, err := listenTo(policy, job, out, script.Begin)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for _, cfg := range files {
		l.log.InfoContext(ctx, "listening", "job", job.ID, "attempt", job.Restarts+1, "path", cfg.Path, "offset", cfg.Offset, "pattern", cfg.Pattern, "done", cfg.Done)
		group.Go(func() error { return progress.Follow(ctx, cfg, l.report) })
	}
	return group.Wait()
}

// listenTo says which files are followed for what. out is the script's own output.
func listenTo(p tuning.Policy, job parse.Job, out progress.Config, begin func(path string) int64) ([]progress.Config, error) {
	saved := ""
	if p.Checkpoint != nil {
		saved = p.Checkpoint.Done
	}
	pattern, done, err := patterns(p.Progress.Pattern, saved)
	if err != nil {
		return nil, err
	}
	epochs := out
	epochs.Pattern, epochs.Total, out.Done = pattern, p.Progress.Total, done
	if p.Progress.File != "" {
		epochs.Path = p.Progress.File
		if !filepath.IsAbs(epochs.Path) {
			epochs.Path = filepath.Join(job.WorkDir, epochs.Path)
		}
		epochs.Offset = begin(epochs.Path)
	}
	if epochs.Path == out.Path && pattern != nil {
		epochs.Done = done
		return []progress.Config{epochs}, nil
	}
	return slices.DeleteFunc([]progress.Config{epochs, out}, func(c progress.Config) bool { return c.Pattern == nil && c.Done == nil }), nil
}

// How long to wait before Slurm is asked again: a controller of Slurm's that is away
// comes back, and all jobs of a cluster must not ask it at once.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// ask returns the job and what its stanza says. It asks again for as long as Slurm
// does not answer. errNothing means that there is nothing to listen to.
func (l inJob) ask(ctx context.Context) (parse.Job, tuning.Policy, error) {
	for wait := firstPause; ; wait = min(2*wait, lastPause) {
		job, policy, err := l.read(ctx)
		if err == nil || !errors.Is(err, driver.ErrTransient) {
			return job, policy, err
		}
		l.log.InfoContext(ctx, "Slurm does not answer", "job", l.id, "err", err)
		if driver.Pause(ctx, wait) != nil {
			return job, policy, fmt.Errorf("job %s: %w", l.id, ctx.Err())
		}
	}
}

func (l inJob) read(ctx context.Context) (parse.Job, tuning.Policy, error) {
	var none tuning.Policy
	out, err := l.slurm.Run(ctx, command.Call{Name: "scontrol", Args: []string{"-o", "show", "job", l.id}})
	if err != nil {
		return parse.Job{}, none, fmt.Errorf("job %s: %w", l.id, err)
	}
	jobs, err := parse.Jobs(out.Stdout)
	if len(jobs) == 0 {
		return parse.Job{}, none, fmt.Errorf("job %s: not one record: %w", l.id, errors.Join(err, driver.ErrUnsupported))
	}
	job := jobs[0] // of an array's task there is its own
	hand := slurmctl.Commands{Runner: l.slurm}
	script, err := hand.Script(ctx, l.id)
	if err != nil && l.array != "" && !errors.Is(err, driver.ErrTransient) {
		script, err = hand.Script(ctx, l.array)
	}
	if err != nil {
		return job, none, fmt.Errorf("script of job %s: %w", l.id, err)
	}
	file, err := detect.For("slurm")(job.Name, sbatch.WithComment(script, job.Comment), nil)
	if err != nil {
		return job, none, fmt.Errorf("%w: its script cannot be read: %w", errNothing, err)
	}
	policy, err := stanza.Policy(file)
	switch {
	case err != nil:
		return job, none, fmt.Errorf("%w: %w", errNothing, err)
	case policy.Progress.Pattern == "" && (policy.Checkpoint == nil || policy.Checkpoint.Done == ""):
		return job, none, fmt.Errorf("%w: it names no line", errNothing)
	}
	return job, policy, nil
}
