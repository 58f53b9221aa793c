package fault

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Process is a program that runs beside the test and ends with it.
type Process struct {
	Cmd   *exec.Cmd
	Ended chan struct{} // closed when it was waited for
}

// Start starts a program that writes to the file, behind what stands there. It is
// killed where the test's own process is.
func Start(t testing.TB, cmd *exec.Cmd, to string) *Process {
	t.Helper()
	p, err := Begin(cmd, to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Begin is Start for who wants the error.
func Begin(cmd *exec.Cmd, to string) (*Process, error) {
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Close() }()
	cmd.Stdout, cmd.Stderr = out, out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &Process{Cmd: cmd, Ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel means the thread that forked, so it has to stay.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.Ended)
		}
	}()
	return p, <-started
}

// Alive reports whether it runs.
func (p *Process) Alive() bool {
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// Kill ends it as a crash does.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Ended
}

// End asks it to leave.
func (p *Process) End(t testing.TB) {
	t.Helper()
	_ = p.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Ended:
	case <-time.After(30 * time.Second):
		t.Errorf("%s does not end when it is told to", p.Cmd.Path)
		p.Kill()
	}
}
