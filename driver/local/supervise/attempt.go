package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/cgroup"
)

// How often the supervisor looks, and how long it is polite.
const (
	lookEvery    = 50 * time.Millisecond
	measureEvery = 200 * time.Millisecond
	termGrace    = 5 * time.Second
	drainGrace   = 5 * time.Second
	killLimit    = 20 * time.Second
)

// attempt is one run of a job and its processes.
type attempt struct {
	dir  string
	plan Plan
	log  *slog.Logger

	leaf     cgroup.Leaf
	job      *exec.Cmd
	ended    chan error // the job's main process ended, and is to be waited for
	reported chan fault // the stage executed the job (zero) or could not
	executed bool
	listener *helper
	began    time.Time

	ending   Reason     // why the supervisor ends the job; empty = it does not
	stop     StopReason // with Stopped
	killAt   time.Time  // when politeness ends
	sent     string     // id of the last Signal sent
	measured time.Time
	cache    uint64 // the most page cache that was seen
}

// perform runs the attempt to its end.
func (a *attempt) perform(ctx context.Context) Exit {
	if err := a.start(ctx); err != nil {
		// Nothing of the job ran: the stage, where there is one, waits for a word
		// that never comes.
		a.cleanUp(ctx)
		return Exit{Reason: NotStarted, Code: codeCannotRun, Detail: err.Error()}
	}
	exit := a.watch(ctx)
	exit.Started, exit.Ended, exit.Peak = a.began, time.Now(), a.peak() // its listener may take seconds to end
	a.cleanUp(ctx)
	return exit
}

// start makes the cgroups and the stage, and lets the stage go.
func (a *attempt) start(ctx context.Context) error {
	if a.plan.Tree.Kind == cgroup.None {
		// Without a cgroup orphans are found as descendants.
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("becoming a subreaper: %w", err)
		}
	}
	if err := a.makeOutput(); err != nil {
		return err
	}
	leaf, err := a.plan.Tree.Create(ctx, a.plan.Leaf, cgroup.Limits{CPUs: a.plan.CPUs, MemoryBytes: a.plan.MemoryBytes})
	if err != nil {
		return err
	}
	a.leaf = leaf
	word, err := a.startStage()
	if err != nil {
		return err
	}
	defer func() {
		if err := word.Close(); err != nil {
			a.log.Warn("closing the pipe to the stage", "error", err)
		}
	}()
	if err := a.leaf.Add(a.job.Process.Pid); err != nil {
		return err
	}
	p, err := identify(a.job.Process.Pid)
	if err != nil {
		return err
	}
	a.began = p.At
	if err := durable.WriteJSON(filepath.Join(a.dir, ProcessFile), p, 0o600); err != nil {
		return err
	}
	a.listener = a.prepareListener()
	if _, err := word.Write([]byte{1}); err != nil {
		return fmt.Errorf("letting the stage go: %w", err)
	}
	return nil
}

// makeOutput makes the output in the scheduler's own directory, where the job's
// user may not make files.
func (a *attempt) makeOutput() error {
	if !a.plan.Own {
		return nil
	}
	f, err := os.OpenFile(a.plan.Output, os.O_CREATE|os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("making the output: %w", err)
	}
	if u := a.plan.User; u != nil {
		err = f.Chown(int(u.UID), int(u.GID))
	}
	return errors.Join(err, f.Close())
}

// startStage starts the process that becomes the job, and returns the pipe whose
// first byte lets it go.
func (a *attempt) startStage() (*os.File, error) {
	reportRead, reportWrite, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("pipe: %w", err)
	}
	goRead, goWrite, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pipe: %w", err), reportRead.Close(), reportWrite.Close())
	}
	argv := append(append([]string{}, a.plan.Self...), "stage", a.dir)
	// Not CommandContext: nothing but the supervisor's own rules ends the job.
	a.job = exec.Command(argv[0], argv[1:]...) //nolint:noctx // see above
	a.job.Stderr = os.Stderr
	a.job.Env = append(os.Environ(), JobVariable+"="+a.plan.Job) // so that it is known before it is the job
	a.job.ExtraFiles = []*os.File{reportWrite, goRead}           // descriptors reportFD and goFD
	a.job.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = a.job.Start()
	err = errors.Join(err, reportWrite.Close(), goRead.Close())
	if err != nil {
		a.job = nil
		return nil, errors.Join(fmt.Errorf("starting the stage: %w", err), reportRead.Close(), goWrite.Close())
	}
	a.ended, a.reported = make(chan error, 1), make(chan fault, 1)
	go func() { a.ended <- awaitEnd(a.job.Process.Pid) }()
	go func() {
		var f fault
		data, err := io.ReadAll(reportRead)
		if len(data) > 0 {
			err = json.Unmarshal(data, &f)
		}
		if err := errors.Join(err, reportRead.Close()); err != nil && f.Detail == "" {
			f = fault{Code: codeCannotRun, Detail: "report of the stage: " + err.Error()}
		}
		a.reported <- f
	}()
	return goWrite, nil
}

// awaitEnd returns when the child has ended. It leaves its number to it.
func awaitEnd(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// watch waits for the end of the job, and ends it where it must.
func (a *attempt) watch(ctx context.Context) Exit {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case f := <-a.reported:
			a.reported = nil
			if f.Detail != "" {
				_ = a.job.Wait() // its end is known: it was never executed
				return a.notExecuted(f)
			}
			a.executed = true
			a.listener.start(a.leaf, a.log)
		case err := <-a.ended:
			err = errors.Join(err, a.job.Wait()) // here, so that cleanUp does not wait for an end that was seen
			if a.reported != nil {
				if f := <-a.reported; f.Detail != "" {
					return a.notExecuted(f)
				}
				// A job this short is listened to afterwards.
				a.listener.start(a.leaf, a.log)
			}
			return a.exit(err)
		case now := <-tick.C:
			a.look(ctx, now)
		}
	}
}

func (a *attempt) notExecuted(f fault) Exit {
	if a.ending == Stopped {
		return Exit{Reason: Stopped, Stop: a.stop, Code: f.Code, Detail: f.Detail}
	}
	return Exit{Reason: NotStarted, Code: f.Code, Detail: f.Detail}
}

// exit says how the main process ended, and with it the attempt.
func (a *attempt) exit(err error) Exit {
	e := Exit{Reason: Exited}
	status, ok := a.job.ProcessState.Sys().(syscall.WaitStatus)
	switch {
	case !ok:
		return Exit{Reason: Signalled, Code: -1, Detail: fmt.Sprintf("status unreadable: %v", err)}
	case status.Signaled():
		e.Reason, e.Code, e.Detail = Signalled, 128+int(status.Signal()), "killed by "+unix.SignalName(status.Signal())
	default:
		e.Code = status.ExitStatus()
		e.Detail = fmt.Sprintf("exit status %d", e.Code)
	}
	if a.stop == StopDiscarded && status.Signal() != unix.SIGKILL {
		a.ending = "" // it ended by itself before it was killed
	}
	// The kernel may have killed for memory after the last look.
	if kills := a.leaf.OOMKills(); kills > 0 && e.Code != 0 && a.ending == "" {
		a.ending = Memory
	}
	switch a.ending {
	case "", Exited, Signalled, NotStarted:
	case Memory:
		e.Reason, e.Detail = Memory, fmt.Sprintf("over the memory limit of %g MiB", float64(a.plan.MemoryBytes)/(1<<20))
		if a.plan.MemoryBytes <= 0 {
			e.Detail = "killed by the kernel for memory, although it has no limit: the machine was full"
		}
	case TimeUp:
		e.Reason, e.Detail = TimeUp, fmt.Sprintf("over the time limit of %v", a.plan.TimeLimit)
	case Stopped:
		e.Reason, e.Stop, e.Detail = Stopped, a.stop, string(a.stop)+", "+e.Detail
	}
	return e
}

// cleanUp leaves nothing of the attempt running: first the job's own remains,
// then the listener, which may finish reading, then the cgroups.
func (a *attempt) cleanUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, killLimit)
	defer cancel()
	if a.job != nil {
		if err := a.killJob(ctx); err != nil {
			a.log.Error("processes of the job are left", "error", err)
		}
		if a.job.ProcessState == nil { // its start failed
			select {
			case <-a.ended: //nolint:errcheck // how does not matter
				_ = a.job.Wait() // it was killed
			case <-ctx.Done():
			}
		}
	}
	a.listener.end(ctx, a.job != nil && a.job.ProcessState != nil && a.job.ProcessState.Success(), a.log)
	if err := a.leaf.Kill(ctx); err != nil {
		a.log.Error("processes in the cgroup are left", "error", err)
	}
	if err := a.leaf.Remove(ctx); err != nil {
		a.log.Error("the cgroup is left", "error", err)
	}
}
