package slurm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api"
)

// ErrConfig is wrapped by New where its Config cannot be used here.
var ErrConfig = errors.New("configuration of the slurm driver")

// CauseRequeue is the cause of an attempt that this driver did not bring about:
// the job's owner, an administrator, a preemption or a failed node put the job
// back into the queue.
const CauseRequeue driver.Cause = "requeue"

// Config is what a Driver needs.
type Config struct {
	Dir string // state; made where missing

	// User is whose jobs are seen and changed; default the user of this process.
	User string

	// Partitions are those whose jobs are seen; none = all. A job that Start
	// creates goes to the first, unless its file names one.
	Partitions []string

	// Commands runs Slurm's commands; default those that are installed.
	Commands command.Runner

	// Actor changes jobs and reads their scripts; default by Commands. Where it acts
	// for others (Everyone) it is a broker.
	Actor slurmctl.Actor

	// Everyone: the jobs of all users are seen, and changed by the Actor's rights.
	// Their users submit them, so that Start is not supported; their output is theirs and
	// is not opened, so that Saves counts the checkpoints; and the site's TaskProlog starts
	// the listener.
	Everyone bool

	// Marked: only jobs are seen that the site's submission plugin marked as having a
	// stanza. Without it the script of every job is read once.
	Marked bool

	// Saves returns what an attempt has said so far, through the listener, of checkpoints
	// that it saved: lines that match Checkpoint.Done. It serves where the output is not
	// this user's to read; nil = it is unknown.
	Saves func(ctx context.Context, node string, job driver.JobID, attempt int) (api.Saves, error)

	// Above reports whether the site lets a job have more cores than its owner asks for, as he
	// does at the moment of the change; nil = it does.
	Above func(driver.Job) bool

	// Parse reads a job file.
	Parse func(filename string, src []byte, vars map[string]string) (*jobfile.Job, error)

	// Interval is how often a watch asks squeue, unless that costs more than a hundredth
	// of a core; default 2 s.
	Interval time.Duration

	// Wake is a file that the site's hooks touch when a job begins or ends, so that a
	// watch looks sooner; empty = none.
	Wake string

	// Window is how long a job that was put back into the queue waits for its
	// new settings before it starts again by itself; default 2 min. Slurm's
	// own is about two minutes.
	Window time.Duration

	// Quiet is how long after an sbatch with an unknown outcome its job is looked for before
	// another is submitted; default 2 min. A slurmctld was seen to stall for 76 s.
	Quiet time.Duration

	// Keep is how long the record of an ended job is kept; default 30 days.
	Keep time.Duration

	// TaskProlog: the site runs the shipped TaskProlog, which exports the
	// variables of SettingsDir/JOBID into the job.
	TaskProlog  bool
	SettingsDir string // default Dir/slurm-env

	// Listener is the argv prefix of `pitchpipe listen`, which is started as a step
	// inside each job that reports progress; empty = no listener. It gets --pattern,
	// --file, --offset and --total.
	Listener []string

	Logger *slog.Logger // default: nothing is logged

	// AfterStep is called after each durable step with its name. Crash tests end
	// the process there; production leaves it nil.
	AfterStep func(step string)
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" || c.Parse == nil {
		return c, fmt.Errorf("%w: Dir and Parse are needed", ErrConfig)
	}
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return c, fmt.Errorf("%w: state directory: %w", ErrConfig, err)
	}
	c.Dir = dir
	self, err := user.Current()
	if err != nil {
		return c, fmt.Errorf("%w: who runs this driver: %w", ErrConfig, err)
	}
	c.User = cmp.Or(c.User, self.Username)
	for _, p := range c.Partitions {
		if p == "" || strings.ContainsAny(p, ", |\n") {
			return c, fmt.Errorf("%w: partition %q", ErrConfig, p)
		}
	}
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	if c.Commands == nil {
		c.Commands = command.Exec{}
	}
	if c.Actor == nil {
		c.Actor = slurmctl.Commands{Runner: c.Commands, Logger: c.Logger}
	}
	c.Interval, c.Keep = cmp.Or(max(c.Interval, 0), 2*time.Second), cmp.Or(max(c.Keep, 0), 30*24*time.Hour)
	c.Window, c.Quiet = cmp.Or(max(c.Window, 0), 2*time.Minute), cmp.Or(max(c.Quiet, 0), 2*time.Minute)
	c.SettingsDir = cmp.Or(c.SettingsDir, filepath.Join(dir, "slurm-env"))
	if c.TaskProlog {
		if err := os.MkdirAll(c.SettingsDir, 0o755); err != nil {
			return c, fmt.Errorf("%w: %w", ErrConfig, err)
		}
	}
	if c.AfterStep == nil {
		c.AfterStep = func(string) {}
	}
	return c, nil
}
