package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Daemon is a process in a session of its own. The zero value runs nothing; Start may
// follow an end.
type Daemon struct {
	mu    sync.Mutex
	name  string
	cmd   *exec.Cmd
	ended chan struct{} // closed after Wait
}

// Start starts a program as who, nil = this user, with exactly the environment env. What
// it writes is appended to the file log.
func (d *Daemon) Start(name, log, dir string, who *syscall.Credential, env []string, argv ...string) error {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // a test's log
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.CommandContext(context.Background(), argv[0], argv[1:]...) //nolint:gosec // it lives until End
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, env, out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.name, d.cmd, d.ended = name, cmd, ended
	return nil
}

func (d *Daemon) process() (*exec.Cmd, chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.cmd, d.ended
}

// Ended is closed when the process has ended; nil before Start.
func (d *Daemon) Ended() <-chan struct{} {
	_, ended := d.process()
	return ended
}

// PID is the process's, 0 where none runs.
func (d *Daemon) PID() int {
	cmd, ended := d.process()
	select {
	case <-ended:
		return 0
	default:
	}
	if cmd == nil {
		return 0
	}
	return cmd.Process.Pid
}

// Failed says how the process ended; nil while it runs and before Start.
func (d *Daemon) Failed() error {
	cmd, ended := d.process()
	select {
	case <-ended:
		return fmt.Errorf("%s ended: %v", d.name, cmd.ProcessState)
	default:
		return nil
	}
}

// End signals the process and waits; after wait it kills it.
func (d *Daemon) End(sig syscall.Signal, wait time.Duration) {
	cmd, ended := d.process()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	select {
	case <-ended:
	case <-time.After(wait):
		_ = cmd.Process.Kill()
		<-ended
	}
}

// Kill ends the process as a crash does.
func (d *Daemon) Kill() { d.End(syscall.SIGKILL, 0) }

// Await asks until the answer is nil, the daemon has ended or the context is done. One
// question takes ten seconds at most and ends with the daemon.
func (d *Daemon) Await(ctx context.Context, ask func(context.Context) error) error {
	once := func() error {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if _, ended := d.process(); ended != nil {
			go func() {
				select {
				case <-ended:
					cancel()
				case <-ctx.Done():
				}
			}()
		}
		return ask(ctx)
	}
	for {
		err := once()
		if err == nil {
			return nil
		}
		if failed := d.Failed(); failed != nil {
			return fmt.Errorf("%w: %w", failed, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w: %w", d.name, ctx.Err(), err)
		case <-time.After(20 * time.Millisecond):
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
