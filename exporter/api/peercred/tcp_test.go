package peercred_test

import (
	"errors"
	"net"
	"os"
	"testing"

	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

func TestTheKernelSaysWhoseAConnectionIs(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"} {
		var lc net.ListenConfig
		inner, err := lc.Listen(t.Context(), "tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err)
			continue
		}
		l := &peercred.Listener{Listener: inner, Room: peercred.Room{All: 9, Strangers: 9, Each: 9}}
		for _, uid := range []uint32{uint32(os.Getuid()), alice, bob} {
			var here net.Conn
			peercredtest.As(t, uid, func() { here, err = peercredtest.Dial("tcp", l.Addr().String()) })
			if err != nil {
				t.Fatal(err)
			}
			there, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if who, err := peercred.Of(there); err != nil || who.UID != uid || who.Share.UID != uid {
				t.Errorf("%s: %+v, %v; want user %d", at, who, err, uid)
			}
			if err := errors.Join(here.Close(), there.Close()); err != nil {
				t.Error(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Errorf("after its end: %v, want %v", err, net.ErrClosed)
		}
	}
}

// pair are the two ends of a connection.
func pair(t *testing.T, network, at string) (here, there net.Conn) {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), network, at)
	if err != nil {
		t.Fatal(err)
	}
	here, err = (&net.Dialer{}).DialContext(t.Context(), network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	there, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	t.Cleanup(func() { _, _ = here.Close(), there.Close() })
	return here, there
}

func TestCallersOfOtherMachinesShareByTheirAddresses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ from, share string }{
		{"192.0.2.1:99", "192.0.2.1"}, {"[::ffff:192.0.2.1]:98", "192.0.2.1"}, {"[2001:db8::1]:7", "2001:db8::1"},
	} {
		at, err := net.ResolveTCPAddr("tcp", tc.from)
		if err != nil {
			t.Fatal(err)
		}
		who, err := peercred.Of(elsewhere{at: at})
		if !errors.Is(err, peercred.ErrUnknown) || who.UID != peercred.Nobody || who.Share.Addr.String() != tc.share {
			t.Errorf("%s: %+v, %v; want a share of %s", tc.from, who, err, tc.share)
		}
	}
}

// elsewhere is a connection from another machine.
type elsewhere struct {
	net.Conn
	at net.Addr
}

func (e elsewhere) RemoteAddr() net.Addr { return e.at }
