package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

var errChild = errors.New("a program that this one started does not run")

type child struct {
	end   func()
	log   string
	ended chan struct{}
}

// launch starts a program and waits until ready gives no error. What configures the user's own controller in
// the environment does not reach it: else a demo would play on their real scheduler.
func launch(ctx context.Context, log string, ready func() error, program string, args ...string) (*child, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the log: %w", err)
	}
	defer func() { _ = out.Close() }() // the child has its own
	// Its end is ours to choose: it must outlive a cancelled context until its jobs are stopped
	// and what it counted is read.
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	cmd := exec.CommandContext(life, program, args...)
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, 5*time.Second // then it is killed
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "PITCHPIPE_") })
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		end()
		return nil, fmt.Errorf("%w: start %s: %w", errChild, program, err)
	}
	c := &child{end: end, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(c.ended)
	}()
	for deadline := time.Now().Add(20 * time.Second); ; {
		if err = ready(); err == nil {
			return c, nil
		}
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case <-c.ended:
			err = fmt.Errorf("%w: %s ended: %s", errChild, program, c.tail())
		case <-time.After(50 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
			err = fmt.Errorf("%w: %s does not answer: %w: %s", errChild, program, err, c.tail())
		}
		c.stop()
		return nil, err
	}
}

func (c *child) stop() {
	c.end()
	<-c.ended
}

func (c *child) tail() string {
	b, err := os.ReadFile(c.log)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

func beside(self, name string) string { return filepath.Join(filepath.Dir(self), name) }
