package slurmctl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/parse"
)

// Actor does something to a job. A job is named as scontrol takes it: by its
// number, or a task of an array by ARRAY_TASK.
type Actor interface {
	// Script returns the batch script; others than the job's owner need Slurm's
	// administrator level Operator for it.
	Script(ctx context.Context, job string) ([]byte, error)
	// Signal sends a signal, with SIG, to the batch shell, its children, and the steps.
	// Of a task of an array that it was sent is all that is known: see Commands.
	Signal(ctx context.Context, job, signal string) error
	// Update changes a job that waits.
	Update(ctx context.Context, job string, u Update) error
	// Do does what needs no more than the job's name.
	Do(ctx context.Context, v Verb, job string) error
}

// Verb is what Actor.Do does.
type Verb string

// The verbs.
const (
	// Requeue ends the running attempt and puts the job back into the queue. It does
	// nothing to a job that has ended.
	Requeue Verb = "requeue"
	// Discard is Requeue of an attempt that was not asked to save: what it did since its
	// last checkpoint is lost.
	Discard Verb = "discard"
	Rerun   Verb = "rerun"   // put a job back into the queue that has ended; it must have been seen to have
	Release Verb = "release" // let a job go that the cluster holds
	Cancel  Verb = "cancel"  // end a job for good
)

// ScriptOf is the script of a job by its name, or where slurmctld does not know that any
// more by its number: the script of an array has the number of its last task, which may
// be forgotten before the others have ended.
func ScriptOf(ctx context.Context, hand Actor, name, number string) ([]byte, error) {
	script, err := hand.Script(ctx, name)
	if errors.Is(err, driver.ErrNotFound) && number != name {
		if other, again := hand.Script(ctx, number); again == nil {
			return other, nil
		}
	}
	return script, err
}

// HeadStart is the word in a job's comment that says that its begin time is only there so that the
// job can be changed before it starts, and may be ended.
const HeadStart = "pitchpipe:head-start"

// Marked is the word in a job's comment by which its submitter says that its environment has the
// mark of the TaskProlog, which Slurm shows no one. Where the site's plugin marks jobs it is not
// needed.
const Marked = "pitchpipe:marked"

// Off is the word in a job's comment that keeps it from being tuned.
const Off = "pitchpipe:off"

// Says reports whether a comment has one of these words.
func Says(comment, word string) bool { return slices.Contains(strings.Fields(comment), word) }

// HasStanza reports whether the site's submission plugin marked a job, by its AdminComment, as one
// that has a stanza. Its owner cannot do so.
func HasStanza(j parse.Job) bool {
	return slices.ContainsFunc(strings.Fields(j.AdminComment), func(word string) bool { return strings.HasPrefix(word, "pitchpipe:1:") })
}

// Update is what is changed of a job that waits; what is nil stays as it is.
type Update struct {
	Cores     *int           `json:"cores,omitempty"` // of its one task, and of the job
	Memory    *Memory        `json:"memory,omitempty"`
	TimeLimit *time.Duration `json:"time_limit,omitempty"` // whole minutes; 0 = none
	Start     *time.Duration `json:"start,omitempty"`      // from now on; 0 = now
	Nice      *int           `json:"nice,omitempty"`       // how much its priority is lower

	// Requeue repeats the present setting of whether the job's owner allows restarts: that changes
	// nothing, and gives a waiting task of an array its own number.
	Requeue *bool `json:"requeue,omitempty"`
}

// Gap is the least time between the end of an attempt and the start of the next. Slurm's
// nodes refuse what was launched in the second in which the attempt before was revoked, and
// the job fails; or the node waits for a prolog that it never runs, fails the job after two
// minutes and is drained.
const Gap = 2 * time.Second

// Judge is an Actor that can be asked beforehand.
type Judge interface {
	// May reports whether an update of a size would be refused if the job waited.
	May(ctx context.Context, job string, u Update) error
}

// Empty reports whether nothing is changed.
func (u Update) Empty() bool { return u == Update{} }

// Args are those of scontrol update. The CPUs of the job, of its one task and the
// least of its one node are set together: each alone leaves the others, and a job that
// was submitted with --cpus-per-task would get that many again.
func (u Update) Args() []string {
	var args []string
	if u.Cores != nil {
		args = append(args, fmt.Sprintf("NumCPUs=%d", *u.Cores), fmt.Sprintf("CpusPerTask=%d", *u.Cores), fmt.Sprintf("MinCPUsNode=%d", *u.Cores))
	}
	if u.Memory != nil {
		key := map[bool]string{false: "MinMemoryNode", true: "MinMemoryCPU"}[u.Memory.PerCPU]
		args = append(args, fmt.Sprintf("%s=%d", key, u.Memory.Bytes>>20))
	}
	if u.TimeLimit != nil {
		limit := "UNLIMITED"
		if *u.TimeLimit > 0 {
			limit = fmt.Sprint(int(u.TimeLimit.Minutes()))
		}
		args = append(args, "TimeLimit="+limit)
	}
	if u.Nice != nil {
		args = append(args, fmt.Sprintf("Nice=%d", *u.Nice))
	}
	if u.Requeue != nil {
		args = append(args, "Requeue="+map[bool]string{false: "0", true: "1"}[*u.Requeue])
	}
	switch {
	case u.Start == nil:
	case *u.Start <= 0:
		args = append(args, "StartTime=now")
	default:
		args = append(args, fmt.Sprintf("StartTime=now+%d", int(u.Start.Seconds())))
	}
	return args
}

// Commands acts by Slurm's commands, with the rights of the user who runs them.
type Commands struct {
	Runner command.Runner
	Logger *slog.Logger // nil: nothing is logged
}

var _ Actor = Commands{}

// Script asks scontrol.
func (c Commands) Script(ctx context.Context, job string) ([]byte, error) {
	return command.Ask(ctx, c.Runner, "scontrol", "write", "batch_script", job, "-")
}

// once is how long a signal to a task of an array may take: while other tasks of its
// array wait, slurmctld delivers it and answers that it may be tried again, which
// scancel does every five seconds, for a minute.
const once = 4 * time.Second

// Signal is scancel --full --signal. For a task of an array it is cut off before scancel repeats
// it. That is usual and not an error: where slurmctld itself hangs the job is not asked, does not
// save, and its move is abandoned.
func (c Commands) Signal(ctx context.Context, job, signal string) error {
	short, cancel := ctx, func() {}
	if strings.Contains(job, "_") {
		short, cancel = context.WithTimeout(ctx, once)
	}
	defer cancel()
	err := c.effect(short, "scancel", "--full", "--signal="+strings.TrimPrefix(signal, "SIG"), job)
	if errors.Is(err, driver.ErrUnknown) && short.Err() != nil && ctx.Err() == nil {
		return nil
	}
	return err
}

// Do is a command. Discard is that of Requeue: Slurm does not ask whether a job has saved.
func (c Commands) Do(ctx context.Context, v Verb, job string) error {
	argv := map[Verb][]string{
		Requeue: {"scontrol", "requeue", "Incomplete"}, Discard: {"scontrol", "requeue", "Incomplete"},
		Rerun: {"scontrol", "requeue"}, Release: {"scontrol", "release"}, Cancel: {"scancel"},
	}[v]
	return c.effect(ctx, argv[0], append(argv[1:], job)...)
}

// Update is scontrol update.
func (c Commands) Update(ctx context.Context, job string, u Update) error {
	if u.Empty() {
		return fmt.Errorf("an update of nothing: %w", driver.ErrInvalid)
	}
	return c.effect(ctx, "scontrol", append([]string{"update", "JobId=" + job}, u.Args()...)...)
}

func (c Commands) effect(ctx context.Context, name string, args ...string) error {
	call := command.Call{Name: name, Args: args, Effect: true}
	if c.Logger != nil {
		c.Logger.Info("slurm", "command", call.String())
	}
	_, err := c.Runner.Run(ctx, call)
	return err
}

// Config reads the cluster's configuration. It is read where it is needed and not kept: an
// administrator changes it while this process runs.
func Config(ctx context.Context, run command.Runner) (parse.Conf, error) {
	out, err := command.Ask(ctx, run, "scontrol", "show", "config")
	if err != nil {
		return nil, fmt.Errorf("the configuration of the cluster: %w", err)
	}
	return parse.Config(out), nil
}

// remembered is how long slurmctld must remember an ended job at least if one that is killed for
// memory is to run again: a controller may be away that long.
const remembered = 2 * time.Minute

// Repairable refuses less memory where a kill for it could not be taken back, or others
// would have heard of it: a dependant of a job that failed never runs, or has run. Whether this
// account sees all jobs, although others do not, is its caller's to say.
func Repairable(ctx context.Context, run command.Runner, j parse.Job, seesAll bool) error {
	if !j.Requeue {
		return fmt.Errorf("its owner forbids restarts (--no-requeue), and a kill for memory would need one: %w", driver.ErrDenied)
	}
	conf, err := Config(ctx, run)
	if err != nil {
		return err
	}
	if conf.HidesJobs() && !seesAll {
		return fmt.Errorf("others' jobs that may depend on it are hidden here (PrivateData), and would hear of a kill for memory: %w", driver.ErrUnsupported)
	}
	if age := conf.Remembers(); age != 0 && age < remembered {
		return fmt.Errorf("slurmctld forgets ended jobs too soon (MinJobAge) for a kill for memory to be taken back: %w", driver.ErrUnsupported)
	}
	waiting, err := command.Ask(ctx, run, "squeue", "-h", "-a", "-r", "-t", "PD", "-o", parse.DependantsFormat)
	if err != nil {
		return fmt.Errorf("who depends on it: %w", err)
	}
	if id, ok := parse.Dependant(waiting, j); ok {
		return fmt.Errorf("job %s depends on it, and would hear of a kill for memory: %w", id, driver.ErrUnsupported)
	}
	return nil
}
