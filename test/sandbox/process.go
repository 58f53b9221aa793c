package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/driver"
)

// Process is a program that runs next to this one, in its own session. It is killed
// where this process is. A nil Process runs nothing.
type Process struct {
	Name  string
	Cmd   *exec.Cmd
	Ended chan struct{} // closed when it was waited for
}

// Begin starts a program that writes to the end of the file log; without one it writes to
// where the command says.
func Begin(name, log string, cmd *exec.Cmd) (*Process, error) {
	if log != "" {
		out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // a test's log
		if err != nil {
			return nil, err
		}
		defer func() { _ = out.Close() }()
		cmd.Stdout, cmd.Stderr = out, out
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setsid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	p := &Process{Name: name, Cmd: cmd, Ended: make(chan struct{})}
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
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// Start is Begin for a test, with which the program ends, and which shows the last lines of
// its log where it fails.
func Start(t testing.TB, name, log string, cmd *exec.Cmd) *Process {
	t.Helper()
	p, err := Begin(name, log, cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Leave(time.Minute); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("%s:\n%s", log, Tail(log, 120))
		}
	})
	return p
}

// Tail are the last lines of a file.
func Tail(path string, n int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// Beside runs a function next to the test until stop is called, at the latest until the test
// ends; then its context is done. The test fails where it returns an error.
func Beside(t testing.TB, name string, run func(ctx context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("%s ended with: %v", name, err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Alive reports whether it runs.
func (p *Process) Alive() bool { return p != nil && p.Failed() == nil }

// Failed says how it ended; nil while it runs.
func (p *Process) Failed() error {
	if p == nil {
		return nil
	}
	select {
	case <-p.Ended:
		return fmt.Errorf("%s ended: %v", p.Name, p.Cmd.ProcessState)
	default:
		return nil
	}
}

// End signals the process and waits; after wait it kills it.
func (p *Process) End(sig syscall.Signal, wait time.Duration) {
	if p == nil {
		return
	}
	_ = p.Cmd.Process.Signal(sig)
	select {
	case <-p.Ended:
	case <-time.After(wait):
		_ = p.Cmd.Process.Kill()
		<-p.Ended
	}
}

// Kill ends the process as a crash does.
func (p *Process) Kill() { p.End(syscall.SIGKILL, 0) }

// Leave asks the program to leave, where it runs. The error says how it left otherwise than
// well; after wait it was killed.
func (p *Process) Leave(wait time.Duration) error {
	if !p.Alive() {
		return nil
	}
	p.End(syscall.SIGTERM, wait)
	if !p.Cmd.ProcessState.Success() {
		return p.Failed()
	}
	return nil
}

// Await asks until the answer is nil, the program has ended or the context is done. One
// question takes ten seconds at most and ends with the program.
func (p *Process) Await(ctx context.Context, ask func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		go func() {
			select {
			case <-p.Ended:
				cancel()
			case <-ctx.Done():
			}
		}()
		return ask(ctx)
	}
	for {
		err := once()
		if err == nil {
			return nil
		}
		if failed := p.Failed(); failed != nil {
			return fmt.Errorf("%w: %w", failed, err)
		}
		if over := driver.Pause(ctx, 20*time.Millisecond); over != nil {
			return fmt.Errorf("%s: %w: %w", p.Name, over, err)
		}
	}
}

// Ports finds n ports of loopback that are free for TCP and UDP, below the range from
// which the kernel gives ports to clients.
func Ports(n int) ([]int, error) {
	var out []int
	for range 200 {
		var b [2]byte
		if _, err := rand.Read(b[:]); err != nil {
			return nil, err
		}
		port := 15000 + (int(b[0])<<8|int(b[1]))%17000
		if slices.Contains(out, port) || !free(port) {
			continue
		}
		if out = append(out, port); len(out) == n {
			return out, nil
		}
	}
	return nil, errors.New("no free ports on loopback")
}

// Address is a free one of loopback.
func Address(t testing.TB) string {
	t.Helper()
	ports, err := Ports(1)
	if err != nil {
		t.Fatal(err)
	}
	return Loopback(ports[0])
}

// Loopback is the address of a port there.
func Loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func free(port int) bool {
	at := net.IPv4(127, 0, 0, 1)
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: at, Port: port})
	if err != nil {
		return false
	}
	u, err := net.ListenUDP("udp4", &net.UDPAddr{IP: at, Port: port})
	if err != nil {
		_ = l.Close()
		return false
	}
	return errors.Join(l.Close(), u.Close()) == nil
}

// Build compiles programs of this module, named by their folders, into one folder.
func Build(ctx context.Context, into string, programs ...string) error {
	args := []string{"build", "-o", into + string(filepath.Separator)}
	for _, p := range programs {
		args = append(args, path.Join("pitchpipe", p))
	}
	if out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// The programs that tests run next to themselves.
const (
	Pitchpipe = "controller/cmd/pitchpipe"
	Exporter  = "exporter/cmd/pitchpipe-exporter"
	Workload  = "test/workload"
	FaultJob  = "test/fault/cmd/faultjob"
)

// Environ is this process's environment without what would configure the programs, and more.
func Environ(more ...string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return slices.ContainsFunc([]string{"NOMAD_", "PITCHPIPE_", "XDG_"}, func(prefix string) bool { return strings.HasPrefix(kv, prefix) })
	}), more...)
}
