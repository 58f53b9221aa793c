package gpu

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// Helper reads the program pitchpipe-gpu.
type Helper struct {
	Path     string        // of the program
	Interval time.Duration // between readings, default 1 s, at most 2 s
	Silence  time.Duration // after which it hangs; default 10 s and five intervals
}

// Name is "helper".
func (Helper) Name() string { return "helper" }

// Run passes on what the helper says, line by line.
func (h Helper) Run(ctx context.Context, emit func(card.Reading)) error {
	interval := pace(h.Interval)
	// A driver may take seconds to wake a GPU up; one that takes longer hangs.
	silence := cmp.Or(h.Silence, 5*interval+10*time.Second)
	return stream(ctx, silence, []string{h.Path, "--interval", interval.String()}, func(line []byte) error {
		r, err := card.Decode(line)
		if err == nil {
			emit(r)
		}
		return err
	})
}

// ErrSilent means that a program wrote nothing for so long that it was killed.
var ErrSilent = errors.New("it fell silent and was killed")

// maxLine bounds a line of a program: a reading of 256 GPUs with many processes.
const maxLine = 4 << 20

// stream runs a program and passes each line of its output to take, until it ends, take
// fails, ctx ends, or it writes nothing for silence. It kills the program's whole process
// group, and does not wait for a program that the kernel does not let go of.
func stream(ctx context.Context, silence time.Duration, argv []string, take func(line []byte) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	runtime.LockOSThread() // Pdeathsig means the thread that starts it
	defer runtime.UnlockOSThread()
	cmd := exec.Command(argv[0], argv[1:]...) //nolint:noctx // its whole group is killed below
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
	defer context.AfterFunc(ctx, func() { _ = out.Close() })() // ends the loop below
	watchdog := time.AfterFunc(silence, func() { cancel(ErrSilent) })
	defer watchdog.Stop()
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, maxLine)
	for err == nil && lines.Scan() {
		err = take(lines.Bytes())
		watchdog.Reset(silence)
	}
	if ended := ctx.Err() != nil; err == nil && ended {
		err = context.Cause(ctx)
	} else if err == nil {
		err = lines.Err()
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // it may be gone
	_ = out.Close()
	waited := make(chan error, 1)
	go func() { waited <- cmd.Wait() }()
	select {
	case failed := <-waited:
		if err == nil && failed != nil {
			return fmt.Errorf("%s: %w: %s", argv[0], failed, stderr.text())
		}
	case <-time.After(time.Second): // in the driver, where no signal reaches it
	}
	if err == nil {
		return fmt.Errorf("%s ended: %s", argv[0], stderr.text())
	}
	return fmt.Errorf("%s: %w", argv[0], err)
}

// tail keeps the end of a program's complaints.
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
	return cmp.Or(string(t.kept), "no error message")
}
