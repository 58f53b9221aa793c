package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/test/sandbox"
)

// process is one run of a task.
type process struct {
	spec   Spec
	cmd    *exec.Cmd
	groups groups
	ended  chan struct{} // closed when result is there
	result outcome
}

// launch starts the task's process.
func launch(s Spec, c config, env map[string]string) (*process, error) {
	p := &process{spec: s, ended: make(chan struct{})}
	const failed = "failed to launch command with executor: rpc error: code = Unknown desc = "
	path, err := s.lookup(c.command)
	if err != nil {
		return nil, fmt.Errorf(failed+"%w", err)
	}
	p.cmd = exec.CommandContext(context.Background(), path, c.args...) // it is ended by its id
	p.cmd.Dir = c.workDir
	if p.cmd.Dir == "" {
		p.cmd.Dir = s.dir()
	}
	for k, v := range env {
		p.cmd.Env = append(p.cmd.Env, k+"="+v)
	}
	slices.Sort(p.cmd.Env)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	for stream, to := range map[string]func(*os.File){"stdout": func(f *os.File) { p.cmd.Stdout = f }, "stderr": func(f *os.File) { p.cmd.Stderr = f }} {
		f, err := os.OpenFile(s.logPath(stream), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // the task's user reads it
		if err != nil {
			return nil, err
		}
		defer f.Close() //nolint:errcheck // the process has its own
		to(f)
	}
	if p.groups, err = makeGroups(s); err != nil {
		return nil, err
	}
	if err := p.begin(); err != nil {
		p.groups.remove()
		return nil, fmt.Errorf(failed+"failed to start command path=%q --- args=%q: %w", path, p.cmd.Args, err)
	}
	go p.await()
	return p, nil
}

// lookup finds the program: in the task's folders, as an absolute path, on PATH.
func (s Spec) lookup(name string) (string, error) {
	for _, path := range []string{filepath.Join(s.dir(), "local", name), filepath.Join(s.dir(), name), name} {
		if info, err := os.Stat(path); err == nil && !info.IsDir() && filepath.IsAbs(path) {
			return path, nil
		}
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("binary %q could not be found", name)
}

// begin starts the process in its groups and on its cores. The kernel stops a traced
// process before its first instruction, so there is no moment at which it is elsewhere.
func (p *process) begin() error {
	if len(p.groups) == 0 && len(p.spec.CPUs) == 0 {
		return p.cmd.Start()
	}
	runtime.LockOSThread() // only this thread may let it go
	defer runtime.UnlockOSThread()
	p.cmd.SysProcAttr.Ptrace = true
	if err := p.cmd.Start(); err != nil {
		return err
	}
	pid := p.cmd.Process.Pid
	var status unix.WaitStatus
	_, err := unix.Wait4(pid, &status, 0, nil)
	if len(p.spec.CPUs) > 0 {
		var wanted unix.CPUSet
		for _, c := range p.spec.CPUs {
			wanted.Set(c % runtime.NumCPU()) // the node may have more cores than the machine
		}
		err = errors.Join(err, unix.SchedSetaffinity(pid, &wanted))
	}
	for _, g := range p.groups {
		err = errors.Join(err, write(g, "cgroup.procs", strconv.Itoa(pid)))
	}
	if err = errors.Join(err, unix.PtraceDetach(pid)); err != nil {
		return errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
	}
	return nil
}

func (p *process) await() {
	err := p.cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit):
		p.result = outcome{code: exit.ExitCode()}
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			p.result = outcome{code: 128 + int(status.Signal()), signal: int(status.Signal())}
		}
	default:
		p.result = outcome{code: 1}
	}
	close(p.ended)
}

// left reports whether the process has ended by itself, and waits until that is noted: on a
// busy machine that may take a while.
func (p *process) left() bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, p.cmd.Process.Pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	if err == nil && info.Signo != 0 || errors.Is(err, unix.ECHILD) {
		<-p.ended
		return true
	}
	return false
}

// signal sends a signal only to the first process. A name that Nomad does not know, such as
// one without SIG, is SIGINT: the real driver does so, and the task dies of it.
func (p *process) signal(name string) error {
	number := unix.SignalNum(name)
	if number == 0 {
		number = unix.SIGINT
	}
	if err := p.cmd.Process.Signal(number); errors.Is(err, os.ErrProcessDone) {
		return ErrNotRunning
	} else if err != nil {
		return err
	}
	return nil
}

// end sends a signal and kills the process after the timeout. It returns at once.
func (p *process) end(name string, timeout time.Duration) {
	if timeout > 0 {
		_ = p.signal(name) // a process that ignores it is killed
	}
	go func() {
		if pause(timeout, p.ended, nil) {
			_ = p.signal("SIGKILL")
		}
	}()
}

// clear kills what the process left behind and removes its groups.
func (p *process) clear() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // its session's first process group
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

// pids are the processes of the task: those of its groups, and those that have its folder in their environment.
func (p *process) pids() []int {
	return sandbox.Remains{
		Dir: filepath.Join(p.spec.dir(), "local"), Marker: "NOMAD_TASK_DIR", Cgroups: func() []string { return p.groups },
	}.Processes()
}

// groups are the cgroups of one task, the freezer's first; none where this process may
// not make any or they are of another version.
type groups []string

func makeGroups(s Spec) (groups, error) {
	const root = "/sys/fs/cgroup"
	if os.Geteuid() != 0 {
		return nil, nil
	}
	var g groups
	for _, controller := range []string{"freezer", "cpu", "memory"} {
		path := filepath.Join(root, controller, "nomad", s.Alloc.ID+"."+s.Task.Name)
		if _, err := os.Stat(filepath.Join(root, controller, "tasks")); err != nil {
			g.remove()
			return nil, nil //nolint:nilerr // version 2
		}
		if err := os.MkdirAll(path, 0o755); errors.Is(err, os.ErrPermission) || errors.Is(err, syscall.EROFS) {
			g.remove()
			return nil, nil // a container
		} else if err != nil {
			return nil, err
		}
		g = append(g, path)
	}
	r := s.resources()
	err := errors.Join(
		write(g[2], "memory.limit_in_bytes", strconv.FormatInt(max(r.Memory.MemoryMB, r.Memory.MemoryMaxMB)<<20, 10)),
		write(g[2], "memory.soft_limit_in_bytes", strconv.FormatInt(r.Memory.MemoryMB<<20, 10)),
		write(g[1], "cpu.shares", strconv.FormatInt(max(2, r.Cpu.CpuShares), 10)),
	)
	if err != nil {
		g.remove()
	}
	return g, err
}

func write(dir, name, text string) error {
	return os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644) //nolint:gosec // the kernel's file
}

// remove removes the groups and reports whether none is left.
func (g groups) remove() bool {
	all := true
	for _, path := range g {
		if err := syscall.Rmdir(path); err != nil && !errors.Is(err, syscall.ENOENT) {
			all = false
		}
	}
	return all
}
