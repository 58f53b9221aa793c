package task

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one run of a task.
type process struct {
	spec   Spec
	cmd    *exec.Cmd // nil where the driver is mock_driver
	groups *groups
	ended  chan struct{} // closed when result is there
	result outcome

	mu    sync.Mutex
	alive bool          // the first process has not been waited for
	mock  chan struct{} // closed to end a mock
	once  sync.Once
}

// launch starts the task's process.
func launch(s Spec, c config, env map[string]string) (*process, error) {
	p := &process{spec: s, ended: make(chan struct{}), alive: true, mock: make(chan struct{})}
	if s.Task.Driver == "mock_driver" {
		if c.startError != "" {
			return nil, errors.New(c.startError)
		}
		go p.pretend(c)
		return p, nil
	}
	path, err := s.lookup(c.command)
	if err != nil {
		return nil, fmt.Errorf("failed to launch command with executor: rpc error: code = Unknown desc = %w", err)
	}
	p.cmd = exec.CommandContext(context.Background(), path, c.args...) // ended by its id
	p.cmd.Args[0] = path
	p.cmd.Dir = orElse(c.workDir, s.taskDir())
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	slices.Sort(p.cmd.Env)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if p.cmd.SysProcAttr.Credential, err = credential(s.Task.User); err != nil {
		return nil, err
	}
	closeLogs, err := p.logs()
	if err != nil {
		return nil, err
	}
	defer closeLogs()
	if p.groups, err = makeGroups(s); err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		p.groups.remove()
		return nil, fmt.Errorf("failed to launch command with executor: rpc error: code = Unknown desc = failed to start command path=%q --- args=%q: %w", path, p.cmd.Args, err)
	}
	go p.await()
	return p, nil
}

// lookup finds the program: in the task's folders, as an absolute path, on PATH.
func (s Spec) lookup(name string) (string, error) {
	for _, path := range []string{filepath.Join(s.taskDir(), "local", name), filepath.Join(s.taskDir(), name)} {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			return path, nil
		}
	}
	if _, err := os.Stat(name); err == nil && filepath.IsAbs(name) {
		return name, nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("binary %q could not be found", name)
}

// credential are the ids of a user other than the one this runs as.
func credential(name string) (*syscall.Credential, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // no change of user
	}
	u, err := user.Lookup(name)
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	if int(uid) == os.Getuid() {
		return nil, nil //nolint:nilnil // no change of user
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// logs opens the files that the process writes to.
func (p *process) logs() (func(), error) {
	var files []*os.File
	done := func() {
		for _, f := range files {
			_ = f.Close() // the process has its own
		}
	}
	for _, stream := range []string{"stdout", "stderr"} {
		f, err := os.OpenFile(p.spec.logPath(stream), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			done()
			return nil, err
		}
		files = append(files, f)
	}
	p.cmd.Stdout, p.cmd.Stderr = files[0], files[1]
	return done, nil
}

// left tells whether the process has ended by itself, and waits until that is noted: on a
// busy machine that may take a while.
func (p *process) left() bool {
	if p.cmd != nil && p.cmd.Process != nil {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if err == nil && info.Signo != 0 || errors.Is(err, unix.ECHILD) {
			<-p.ended
		}
	}
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// left tells whether the task has ended, or its process has left by itself.
func (t *Task) left() bool {
	t.mu.Lock()
	p, state := t.process, t.state.State
	t.mu.Unlock()
	return state == dead || p != nil && p.left()
}

func (p *process) await() {
	err := p.cmd.Wait()
	p.mu.Lock()
	p.alive = false
	p.mu.Unlock()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		status, ok := exit.Sys().(syscall.WaitStatus)
		if ok && status.Signaled() {
			p.result = outcome{code: 128 + int(status.Signal()), signal: int(status.Signal())}
		} else {
			p.result = outcome{code: exit.ExitCode()}
		}
	default:
		p.result = outcome{code: 1}
	}
	close(p.ended)
}

// pretend is the driver that runs nothing.
func (p *process) pretend(c config) {
	timer := time.NewTimer(c.runFor)
	defer timer.Stop()
	select {
	case <-timer.C:
		p.result = outcome{code: c.exitCode}
	case <-p.mock:
	}
	close(p.ended)
}

// signal sends a signal to the first process alone. A name that Nomad doesn't know, such
// as one without SIG, is SIGINT: so the real driver has it, and the task dies of it.
func (p *process) signal(name string) error {
	number := unix.SignalNum(name)
	if number == 0 {
		number = unix.SIGINT
	}
	if p.cmd == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.alive {
		return ErrNotRunning
	}
	return p.cmd.Process.Signal(number)
}

// end sends a signal and, after the timeout, kills everything. It returns at once.
func (p *process) end(name string, timeout time.Duration) {
	if p.cmd == nil {
		p.once.Do(func() { close(p.mock) })
		return
	}
	if timeout > 0 {
		_ = p.signal(name) // whoever hears no signal is killed
	}
	go func() {
		timer := time.NewTimer(timeout)
		defer timer.Stop()
		select {
		case <-p.ended:
		case <-timer.C:
			_ = p.signal("SIGKILL")
		}
	}()
}

// clear kills what the process left behind and removes its groups.
func (p *process) clear() {
	if p.cmd == nil {
		return
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its session's first group
	for range 500 {
		left := p.pids()
		for _, pid := range left {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(left) == 0 && p.groups.remove() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// pids are the processes of the task: those of its group, or, where there is none,
// those that have its id in their environment.
func (p *process) pids() []int {
	if p.cmd == nil {
		return nil
	}
	if list, ok := p.groups.pids(); ok {
		return list
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err == nil && p.marked(pid) && !gone(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// marked tells whether a process has the task's names in its environment.
func (p *process) marked(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	found := 0
	for kv := range bytes.SplitSeq(text, []byte{0}) {
		if s := string(kv); s == "NOMAD_ALLOC_ID="+p.spec.AllocID || s == "NOMAD_TASK_NAME="+p.spec.Task.Name {
			found++
		}
	}
	return found == 2
}

// gone tells whether a process is gone or only waited for.
func gone(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return true
	}
	i := bytes.LastIndexByte(text, ')')
	return i >= 0 && i+2 < len(text) && (text[i+2] == 'Z' || text[i+2] == 'X')
}
