package faultslurm_test

import (
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs beside the test and ends with it.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it was waited for
}

// start starts a program that writes to the file, behind what stands there. It is
// killed where the test's own process is.
func start(t *testing.T, cmd *exec.Cmd, to string) *process {
	t.Helper()
	p, err := begin(cmd, to)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func begin(cmd *exec.Cmd, to string) (*process, error) {
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
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel means the thread that forked, so it has to stay.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(p.ended)
		}
	}()
	return p, <-started
}

func (p *process) alive() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends it as a crash does.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// end asks it to leave.
func (p *process) end(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-time.After(30 * time.Second):
		t.Errorf("%s does not end when it is told to", p.cmd.Path)
		p.kill()
	}
}
