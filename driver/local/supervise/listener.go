package supervise

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/local/cgroup"
	"pitchpipe/driver/output"
)

// helper is the listener that runs with the job. It never influences how the job ends;
// a nil helper does nothing.
type helper struct {
	cmd    *exec.Cmd
	waited chan error
}

// onWord executes its arguments when a line comes: what a listener reports before it is in the
// job's cgroup belongs to no job. It ends where the supervisor does.
const onWord = `read -r _ && exec "$@" </dev/null`

// prepareListener makes the listener's command line before the job runs, so that
// it reads exactly what this attempt writes.
func (a *attempt) prepareListener() *helper {
	if len(a.plan.Listener) == 0 || a.plan.Pattern == "" {
		return nil
	}
	file, offset := a.plan.Output, int64(0)
	if a.plan.File != "" {
		file = a.plan.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(a.plan.Dir, file)
		}
	}
	if file != a.plan.Output || !a.plan.Truncate {
		uid := output.AnyUser
		if u := a.plan.User; u != nil { // this process may see what his may not
			uid = int(u.UID)
		}
		var err error
		if offset, err = new(output.Reader).Size(file, uid); err != nil {
			a.log.Warn("no listener next to the job", "error", err)
			return nil
		}
	}
	argv := append(append([]string{}, a.plan.Listener...),
		"--pattern", a.plan.Pattern, "--file", file, "--offset", strconv.FormatInt(offset, 10))
	if a.plan.Total > 0 {
		argv = append(argv, "--total", strconv.Itoa(a.plan.Total))
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", onWord, "listener"}, argv...)...) //nolint:noctx // it is ended after the job, see end
	// The job's user could read the scheduler's environment there.
	cmd.Dir, cmd.Env = "/", []string{JobVariable + "=" + a.plan.Job, AttemptVariable + "=" + strconv.Itoa(a.plan.Attempt)}
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if u := a.plan.User; u != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: u.Groups}
	}
	return &helper{cmd: cmd}
}

func (h *helper) start(leaf cgroup.Leaf, log *slog.Logger) {
	if h == nil {
		return
	}
	word, err := h.cmd.StdinPipe()
	if err == nil {
		err = h.cmd.Start()
	}
	if err != nil {
		log.Warn("no listener next to the job", "error", err)
		return
	}
	h.waited = make(chan error, 1)
	go func() { h.waited <- h.cmd.Wait() }()
	// The exporter knows the job by the cgroup of the reporting process, and where there is none by its environment.
	if err := leaf.Add(h.cmd.Process.Pid); err != nil {
		log.Warn("the listener is not in the job's cgroup", "error", err)
	}
	_, err = io.WriteString(word, "\n")
	if err := errors.Join(err, word.Close()); err != nil {
		log.Warn("letting the listener go", "error", err)
	}
}

// pid is the listener's process, or 0.
func (h *helper) pid() int {
	if h == nil || h.cmd.Process == nil {
		return 0
	}
	return h.cmd.Process.Pid
}

// end lets the listener read what is left, and then ends it. After a job that succeeded, an interrupt says that the
// last line is whole, even without a newline.
func (h *helper) end(ctx context.Context, succeeded bool, log *slog.Logger) {
	if h == nil || h.waited == nil {
		return
	}
	drain, cancel := context.WithTimeout(ctx, drainGrace)
	defer cancel()
	word := unix.SIGTERM
	if succeeded {
		word = unix.SIGINT
	}
	if err := h.cmd.Process.Signal(word); err != nil && !errors.Is(err, os.ErrProcessDone) {
		log.Warn("ending the listener", "error", err)
	}
	select {
	case <-h.waited: //nolint:errcheck // how it ended does not matter to the job
		return
	case <-drain.Done():
	}
	if err := h.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		log.Warn("killing the listener", "error", err)
	}
	<-h.waited //nolint:errcheck // how it ended does not matter to the job
}
