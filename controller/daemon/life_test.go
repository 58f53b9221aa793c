package daemon_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/daemontest"
	"pitchpipe/exporter/api/peercred"
)

// run lets a controller serve for a moment at most and returns how that ended.
func run(t *testing.T, c *daemontest.Controller) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return c.Daemon.Run(ctx)
}

func TestASecondControllerOnTheSocketOfALiveOneIsRefused(t *testing.T) {
	t.Parallel()
	first := daemontest.Start(t, daemontest.Options{})
	second := daemontest.New(t, daemontest.Options{Socket: first.Config.Socket})
	if err := run(t, second); !errors.Is(err, peercred.ErrServed) {
		t.Errorf("the second ended with %v, want %v", err, peercred.ErrServed)
	}
	if _, err := first.Client.Jobs(t.Context()); err != nil {
		t.Errorf("the first no longer answers: %v", err)
	}
}

func TestASecondControllerOnTheStateOfALiveOneIsRefused(t *testing.T) {
	t.Parallel()
	first := daemontest.New(t, daemontest.Options{})
	_, err := daemon.New(daemon.Parts{Config: first.Config})
	if err == nil {
		t.Error("two controllers have one state open")
	}
}

func TestTheSocketOfADeadControllerIsTakenOver(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // as a process that is killed leaves it
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	c := daemontest.Start(t, daemontest.Options{Socket: socket})
	if _, err := c.Client.Jobs(t.Context()); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o666 {
		t.Errorf("socket %v (%v): everyone may connect, the peer credentials decide", info, err)
	}
	c.Stop(t)
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestAFileInThePlaceOfTheSocketIsNotRemoved(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "thesis.txt")
	if err := os.WriteFile(path, []byte("years of work"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(t, daemontest.New(t, daemontest.Options{Socket: path})); err == nil {
		t.Error("the controller started in the place of a file")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "years of work" {
		t.Errorf("the file is now %q (%v)", text, err)
	}
}

func TestASilentConnectionDoesNotKeepTheControllerFromEnding(t *testing.T) {
	t.Parallel()
	c := daemontest.Start(t, daemontest.Options{})
	var dialer net.Dialer
	conn, err := dialer.DialContext(t.Context(), "unix", c.Config.Socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c.Stop(t) // fails the test where the end is an error
}

func TestAnAddressThatIsTakenIsAnErrorAndFreesTheSocket(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	c := daemontest.New(t, daemontest.Options{Listen: taken.Addr().String()})
	if err := run(t, c); err == nil {
		t.Error("two processes listen at one address")
	}
	if _, err := os.Stat(c.Config.Socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestPausesSurviveARestart(t *testing.T) {
	t.Parallel()
	state := filepath.Join(t.TempDir(), "state")
	first := daemontest.Start(t, daemontest.Options{State: state})
	for _, p := range []api.Pause{
		{Scope: "user", Name: "bob"}, {Scope: "cluster", Why: "reboot"}, {Scope: "user", Name: "alice"}, {Scope: "partition", Name: "batch"},
	} {
		if err := first.Client.Pause(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Client.Resume(t.Context(), "partition", "batch"); err != nil {
		t.Fatal(err)
	}
	before, err := first.Client.Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var scopes []string
	for _, p := range before {
		scopes = append(scopes, p.Scope+"/"+p.Name+" "+p.By+" "+p.Why)
	}
	if diff := cmp.Diff([]string{"cluster/ " + me(t) + " reboot", "user/alice " + me(t) + " ", "user/bob " + me(t) + " "}, scopes); diff != "" {
		t.Errorf("pauses, widest first (-want +got):\n%s", diff)
	}
	first.Stop(t)
	after, err := daemontest.Start(t, daemontest.Options{State: state}).Client.Pauses(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
}

// freeAddress is a loopback address without a listener.
func freeAddress(t *testing.T) string {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
