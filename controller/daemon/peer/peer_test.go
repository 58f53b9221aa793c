package peer_test

import (
	"errors"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"testing"

	"pitchpipe/controller/daemon/peer"
)

func TestWhoMayDoWhat(t *testing.T) {
	t.Parallel()
	self := uint32(os.Geteuid())
	other := uint32(4242)
	if other == self {
		other++
	}
	for _, c := range []struct {
		name       string
		peer       peer.Peer
		owner      string
		privileged bool
		may        bool
	}{
		{"root sees everybody's jobs", peer.Peer{UID: 0, Name: "root"}, "alice", true, true},
		{"whoever runs the controller sees everybody's jobs", peer.Peer{UID: self, Name: "operator"}, "alice", true, true},
		{"a user sees his own", peer.Peer{UID: other, Name: "alice"}, "alice", false, true},
		{"a user does not see another's", peer.Peer{UID: other, Name: "bob"}, "alice", false, false},
		{"the name alone does not make a user root", peer.Peer{UID: other, Name: "root"}, "alice", false, false},
		{"a user sees those of a namespace that was given to him", peer.Peer{UID: other, Name: "bob"}.With("x").With("team"), "team", false, true},
		{"but no job without an owner", peer.Peer{UID: other, Name: "bob"}.With("team"), "", false, false},
		{"and of no other", peer.Peer{UID: other, Name: "bob"}.With("x").With("team"), "alice", false, false},
		{"no user sees a job without an owner", peer.Peer{UID: other, Name: "bob"}, "", false, false},
	} {
		if got := c.peer.Privileged(); got != c.privileged {
			t.Errorf("%s: privileged %v", c.name, got)
		}
		if got := c.peer.May(c.owner); got != c.may {
			t.Errorf("%s: may %v", c.name, got)
		}
	}
}

// accept returns the two ends of a connection.
func accept(t *testing.T, network, address string) (server net.Conn) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, address)
	if err != nil {
		t.Fatal(err)
	}
	var d net.Dialer
	client, err := d.DialContext(t.Context(), network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, c := range []interface{ Close() error }{l, client} {
			_ = c.Close()
		}
		_ = server.Close()
	})
	return server
}

func TestTheKernelNamesWhoIsAtAUnixSocket(t *testing.T) {
	t.Parallel()
	conn := accept(t, "unix", filepath.Join(t.TempDir(), "s"))
	got, err := peer.From(peer.ConnContext(t.Context(), conn))
	if err != nil {
		t.Fatal(err)
	}
	want, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	if got != (peer.Peer{UID: uint32(os.Geteuid()), Name: want.Username}) {
		t.Errorf("peer %+v, want %s", got, want.Username)
	}
}

func TestOtherConnectionsHaveNoPeer(t *testing.T) {
	t.Parallel()
	tcp := accept(t, "tcp", "127.0.0.1:0")
	if _, err := peer.From(peer.ConnContext(t.Context(), tcp)); !errors.Is(err, peer.ErrUnknown) {
		t.Errorf("over TCP: %v, want %v", err, peer.ErrUnknown)
	}
	closed := accept(t, "unix", filepath.Join(t.TempDir(), "s"))
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := peer.From(peer.ConnContext(t.Context(), closed)); !errors.Is(err, peer.ErrUnknown) {
		t.Errorf("over a closed connection: %v, want %v", err, peer.ErrUnknown)
	}
	if _, err := peer.From(t.Context()); !errors.Is(err, peer.ErrUnknown) {
		t.Errorf("without a connection: %v, want %v", err, peer.ErrUnknown)
	}
}
