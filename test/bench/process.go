package main

import (
	"errors"
	"io"
	"os/exec"
	"syscall"
	"time"
)

// process is a program that runs until it is stopped.
type process struct {
	name   string
	pid    int
	cmd    *exec.Cmd
	ended  chan struct{} // closed when it has ended
	status error         // that it ended with
}

func startProcess(name string, cmd *exec.Cmd, trace io.Writer) (*process, error) {
	cmd.Stdout, cmd.Stderr = trace, trace
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, pid: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	go func() {
		p.status = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

func (p *process) over() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

func (p *process) stop() error {
	err := p.cmd.Process.Signal(syscall.SIGTERM)
	late := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	<-p.ended
	return errors.Join(err, p.status)
}

func (s *site) pids() (pids []int) {
	for _, p := range s.processes {
		pids = append(pids, p.pid)
	}
	return append(pids, s.also...)
}

// stop ends all. Of a process that was waited for the kernel knows the peak memory of it or
// of the largest of its children.
func (s *site) stop(r *report) (err error) {
	if s.client != nil {
		s.client.Close()
	}
	for i, p := range s.processes {
		err = errors.Join(err, p.stop())
		if u, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok && i == 0 && r != nil {
			r.largest = u.Maxrss << 10
		}
	}
	return err
}
