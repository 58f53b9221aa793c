package peercred_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"pitchpipe/exporter/api/peercred"
)

func TestASocketIsTakenFromTheDeadAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "run", "s")
	first, err := peercred.Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("%v, %v; want it open to everybody", info, err)
	}
	if _, err := peercred.Listen(t.Context(), path); !errors.Is(err, peercred.ErrServed) {
		t.Errorf("of one that is served: %v, want %v", err, peercred.ErrServed)
	}
	first.(*net.UnixListener).SetUnlinkOnClose(false) //nolint:forcetypeassert // a test fails so
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := peercred.Listen(t.Context(), path)
	if err != nil {
		t.Fatalf("of one that died: %v", err)
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := peercred.Listen(t.Context(), path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "precious" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

func TestASocketThatIsSeenIsOpenToEverybody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	for range 200 {
		seen := make(chan os.FileMode)
		go func() {
			for {
				if info, err := os.Stat(path); err == nil {
					seen <- info.Mode().Perm()
					return
				}
			}
		}()
		l, err := peercred.Listen(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		if mode := <-seen; mode != 0o666 {
			t.Fatalf("it was seen with mode %#o, want 0666", mode)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheKernelSaysWhoComes(t *testing.T) {
	t.Parallel()
	_, there := pair(t, "unix", filepath.Join(t.TempDir(), "s"))
	who, err := peercred.Of(there)
	if err != nil || who.UID != uint32(os.Geteuid()) || who.PID != os.Getpid() || who.Start == 0 || who.Start != peercred.Started(os.Getpid()) {
		t.Errorf("%+v, %v; want this process", who, err)
	}
	if err := there.Close(); err != nil {
		t.Fatal(err)
	}
	here, tcp := pair(t, "tcp", "127.0.0.1:0")
	if who, err := peercred.Of(tcp); err != nil || who.UID != uint32(os.Geteuid()) || who.PID != 0 {
		t.Errorf("over TCP: %+v, %v; want this user", who, err)
	}
	if err := here.Close(); err != nil {
		t.Fatal(err)
	}
	for name, conn := range map[string]net.Conn{"closed here": there, "closed by the caller": tcp} {
		if who, err := peercred.Of(conn); !errors.Is(err, peercred.ErrUnknown) || who.UID != peercred.Nobody {
			t.Errorf("%s: %+v, %v; want %v", name, who, err, peercred.ErrUnknown)
		}
	}
	if peercred.Started(1<<30) != 0 {
		t.Error("a process began that is none")
	}
}

// One user who connects and leaves in a loop keeps a backlog full.
func TestAFullBacklogIsTriedAgain(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := os.NewFile(uintptr(fd), path)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	l, err := net.FileListener(file)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for err == nil {
		var conn net.Conn
		if conn, err = (&net.Dialer{}).DialContext(t.Context(), "unix", path); err == nil {
			t.Cleanup(func() { _ = conn.Close() })
		}
	}
	if !errors.Is(err, syscall.EAGAIN) {
		t.Fatalf("%v, want a full backlog", err)
	}
	short, cancel := context.WithCancel(t.Context()) // a deadline would end the dial just before the context
	defer time.AfterFunc(100*time.Millisecond, cancel).Stop()
	if _, err := peercred.Dial(short, path); err == nil || short.Err() == nil {
		t.Errorf("%v, want it to be tried until the context ends", err)
	}
	dialled := make(chan error, 1)
	go func() {
		conn, err := peercred.Dial(t.Context(), path)
		if err == nil {
			err = conn.Close()
		}
		dialled <- err
	}()
	select {
	case err := <-dialled:
		t.Fatalf("%v before there was room", err)
	case <-time.After(50 * time.Millisecond):
	}
	conn, err := l.Accept()
	if err := errors.Join(err, <-dialled); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Error(err)
	}
}
