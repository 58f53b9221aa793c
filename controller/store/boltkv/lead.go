package boltkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/controller/store"
)

// retry is how often a lock that another has is tried: the kernel has no way to wait
// for one and to stop waiting.
const retry = 50 * time.Millisecond

// lockPath is the file of the lock of a name: beside the store, its slashes escaped by
// what cannot be in a key.
func (s *Store) lockPath(name string) string {
	return s.path + "." + strings.ReplaceAll(name, "/", "+") + ".lock"
}

// Lead implements store.Store.
func (s *Store) Lead(ctx context.Context, name, holder string) (store.Lease, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	for {
		if s.leases.Closed() {
			return nil, fmt.Errorf("lead %s: %w", name, store.ErrClosed)
		}
		l, err := try(s.lockPath(name), holder)
		if err != nil {
			return nil, fmt.Errorf("lead %s: %w", name, err)
		}
		if l != nil {
			err := ctx.Err()
			if err == nil {
				err = s.leases.Add(l)
			}
			if err != nil {
				return nil, errors.Join(fmt.Errorf("lead %s: %w", name, err), l.Release(context.WithoutCancel(ctx)))
			}
			return l, nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("lead %s: %w", name, ctx.Err())
		case <-time.After(retry):
		}
	}
}

// try takes the lock if it is free; nil: it is not.
func try(path, holder string) (*held, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
			return nil, f.Close()
		}
		return nil, errors.Join(fmt.Errorf("%w: lock %s: %w", store.ErrUnavailable, path, err), f.Close())
	}
	l := &held{path: path, file: f, lost: make(chan struct{})}
	if err := l.ours(); err != nil { // removed between the opening and the lock
		return nil, errors.Join(l.free())
	}
	if err := write(f, holder); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", store.ErrUnavailable, err), l.free())
	}
	return l, nil
}

func write(f *os.File, holder string) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(holder), 0)
	return err
}

// Leader implements store.Store.
func (s *Store) Leader(ctx context.Context, name string) (string, error) {
	if err := errors.Join(ctx.Err(), store.CheckKey(name)); err != nil {
		return "", err
	}
	if s.leases.Closed() {
		return "", store.ErrClosed
	}
	f, err := os.Open(s.lockPath(name))
	if errors.Is(err, os.ErrNotExist) {
		return "", fmt.Errorf("leader of %s: %w", name, store.ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("leader of %s: %w: %w", name, store.ErrUnavailable, err)
	}
	defer f.Close() //nolint:errcheck // what was only read has nothing left to lose
	// Whoever has this lock for a moment keeps a contender waiting for one more try.
	if err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); err == nil {
		return "", fmt.Errorf("leader of %s: %w", name, errors.Join(store.ErrNotFound, unix.Flock(int(f.Fd()), unix.LOCK_UN)))
	}
	holder, err := io.ReadAll(f)
	if err != nil {
		return "", fmt.Errorf("leader of %s: %w: %w", name, store.ErrUnavailable, err)
	}
	return string(holder), nil
}

// held is the lock of a file that this process has.
type held struct {
	path string
	lost chan struct{}

	mu   sync.Mutex
	file *os.File // nil: released
}

// Lost implements store.Lease.
func (l *held) Lost() <-chan struct{} { return l.lost }

// Check implements store.Lease.
func (l *held) Check(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.ours(); err != nil {
		return errors.Join(err, l.free())
	}
	return nil
}

// ours tells whether the lock is still that of the path. Who removes the file takes
// the leadership away.
func (l *held) ours() error {
	if l.file == nil {
		return store.ErrLost
	}
	mine, err := l.file.Stat()
	if err != nil {
		return fmt.Errorf("%w: %w", store.ErrLost, err)
	}
	there, err := os.Stat(l.path)
	if err != nil || !os.SameFile(mine, there) {
		return fmt.Errorf("%w: %s is another file now", store.ErrLost, l.path)
	}
	return nil
}

// free gives the lock back, before the file: a command that is just being started may
// have a copy of the descriptor. The caller holds mu.
func (l *held) free() error {
	if l.file == nil {
		return nil
	}
	f := l.file
	l.file = nil
	close(l.lost)
	return errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_UN), f.Close())
}

// Release implements store.Lease.
func (l *held) Release(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.free()
}
