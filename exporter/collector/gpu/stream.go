package gpu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// ErrSilent means that a program wrote nothing for so long that it was ended.
var ErrSilent = errors.New("it fell silent and was ended")

// maxLine bounds a line of a program: a reading of 256 GPUs with many processes.
const maxLine = 4 << 20

// stream runs a program and hands each line of its output to take, until it ends, take
// fails, ctx ends, or it writes nothing for silence. It ends the program's whole process
// group, for which a program that the kernel does not let go of is not waited for.
func stream(ctx context.Context, silence time.Duration, argv []string, take func(line []byte) error) error {
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // its whole group is ended below
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	stderr := &tail{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", argv[0], err)
	}
	lines, done := make(chan []byte), make(chan error, 1)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		done <- scan(out, lines, stop)
	}()
	failed := follow(ctx, silence, lines, done, take)
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
	_ = out.Close()
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case err := <-waited:
		if failed == nil && err != nil {
			return fmt.Errorf("%s: %w: %s", argv[0], err, stderr.text())
		}
	case <-time.After(time.Second): // in the driver, where no signal reaches it
	}
	if failed == nil {
		return fmt.Errorf("%s ended: %s", argv[0], stderr.text())
	}
	return fmt.Errorf("%s: %w", argv[0], failed)
}

// follow hands lines on; nil: the program closed its output.
func follow(ctx context.Context, silence time.Duration, lines <-chan []byte, done <-chan error, take func([]byte) error) error {
	watchdog := time.NewTimer(silence)
	defer watchdog.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-watchdog.C:
			return ErrSilent
		case line := <-lines:
			if err := take(line); err != nil {
				return err
			}
			watchdog.Reset(silence)
		case err := <-done:
			return err
		}
	}
}

func scan(out io.Reader, lines chan<- []byte, stop <-chan struct{}) error {
	s := bufio.NewScanner(out)
	s.Buffer(nil, maxLine)
	for s.Scan() {
		select {
		case lines <- append([]byte(nil), s.Bytes()...):
		case <-stop:
			return nil
		}
	}
	return s.Err()
}

// tail keeps the end of what a program complains about.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	t.kept = t.kept[max(0, len(t.kept)-300):]
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.kept) == 0 {
		return "without a word"
	}
	return string(t.kept)
}
