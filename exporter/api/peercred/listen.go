package peercred

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// ErrServed means that another process answers on a socket.
var ErrServed = errors.New("another process serves the socket")

// Listen takes a Unix socket over from a process that died, and refuses one that is
// served. Anybody may connect: the credentials decide what each may do.
func Listen(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := free(ctx, path); err != nil {
		return nil, fmt.Errorf("socket %s: %w", path, err)
	}
	l, err := bind(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("socket: %w", err), l.Close())
	}
	return l, nil
}

// bind makes a socket that others may connect to from the moment they see it. Its thread
// gets a umask of its own and ends with it. Where the kernel refuses that, as in some
// containers, others have to wait until Listen has changed the mode.
func bind(ctx context.Context, path string) (l net.Listener, err error) {
	var once sync.WaitGroup
	once.Go(func() {
		runtime.LockOSThread() // and never unlock it
		if syscall.Unshare(syscall.CLONE_FS) == nil {
			syscall.Umask(0o111)
		}
		var lc net.ListenConfig
		l, err = lc.Listen(ctx, "unix", path)
	})
	once.Wait()
	return l, err //nolint:wrapcheck // Listen wraps it
}

// Anybody can keep the backlog of a socket full for a while. Who tries again at random
// gets a place in it.
const (
	dialPatience = 10 * time.Second
	dialAgain    = 5 * time.Millisecond // and up to so much more:
	dialSpread   = 45 * time.Millisecond
)

// Dial connects to a Unix socket. Where the backlog is full it tries again, until ctx
// ends or 10 s have passed.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	for began := time.Now(); ; {
		conn, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) || time.Since(began) >= dialPatience {
			return conn, err //nolint:wrapcheck // it names the socket
		}
		select {
		case <-ctx.Done():
			return nil, err //nolint:wrapcheck // it names the socket
		case <-time.After(dialAgain + rand.N(dialSpread)): //nolint:gosec // no secret
		}
	}
}

// free removes a socket on which no process listens, and nothing else.
func free(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err //nolint:wrapcheck // Listen wraps it
	case info.Mode().Type() != fs.ModeSocket:
		return errors.New("not a socket, and in the way")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(ErrServed, conn.Close())
	case errors.Is(err, syscall.EAGAIN):
		return ErrServed // by one that is busy
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist):
		return err //nolint:wrapcheck // Listen wraps it
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err //nolint:wrapcheck // Listen wraps it
	}
	return nil
}
