package peercred_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

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
	_, tcp := pair(t, "tcp", "127.0.0.1:0")
	for name, conn := range map[string]net.Conn{"closed": there, "over TCP": tcp} {
		if who, err := peercred.Of(conn); !errors.Is(err, peercred.ErrUnknown) || who.UID != peercred.Nobody {
			t.Errorf("%s: %+v, %v; want %v", name, who, err, peercred.ErrUnknown)
		}
	}
	if peercred.Started(1<<30) != 0 {
		t.Error("a process began that is none")
	}
}
