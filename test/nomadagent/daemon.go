package nomadagent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// daemon is a process of nomad agent. The zero value runs nothing.
type daemon struct {
	mu    sync.Mutex
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed after Wait
}

// start starts a program in the namespace; it writes to NAME.log in the folder. Its jobs
// inherit its environment, and cleanup finds them by that.
func (d *daemon) start(r *mountNamespace, dir, name string, argv ...string) error {
	log, err := os.OpenFile(filepath.Join(dir, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	argv = r.inside(argv)
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "HOME=" + dir, marker + "=" + dir}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name, d.cmd, d.ended = name, cmd, ended
	return nil
}

func (d *daemon) over() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended
}

// gone says how the process ended, nil while it runs and before it was started.
func (d *daemon) gone() error {
	select {
	case <-d.over():
		return fmt.Errorf("the agent's %s ended: %v", d.name, d.cmd.ProcessState)
	default:
		return nil
	}
}

// kill ends the process as a crash does.
func (d *daemon) kill() error {
	d.mu.Lock()
	cmd, ended := d.cmd, d.ended
	d.mu.Unlock()
	if cmd == nil {
		return nil
	}
	if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-ended
	return nil
}
