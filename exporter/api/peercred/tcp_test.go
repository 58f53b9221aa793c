package peercred_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/api/peercred/peercredtest"
)

const connections = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:2664 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0000000000000000 100 0 0 10 0
   1: 0100007F:2664 0100007F:A001 01 00000000:00000000 00:00000000 00000000     0        0 2 1 0000000000000000 20 4 30 10 -1
   2: 0100007F:A001 0100007F:2664 01 00000000:00000000 00:00000000 00000000  1000        0 3 1 0000000000000000 20 4 30 10 -1
`

func TestAConnectionIsFoundByBothItsEnds(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, list, local, remote string
		uid                       uint32
		ok                        bool
	}{
		{"the caller's end", connections, "0100007F:A001", "0100007F:2664", 1000, true},
		{"the other end is the exporter's own", connections, "0100007F:2664", "0100007F:A001", 0, true},
		{"a listener is no connection", connections, "0100007F:2664", "0100007F:A002", 0, false},
		{"another port", connections, "0100007F:A002", "0100007F:2664", 0, false},
		{"a line that ends early", "2: 0100007F:A001 0100007F:2664 01\n", "0100007F:A001", "0100007F:2664", 0, false},
		{"no number of a user", strings.Replace(connections, " 1000 ", " -100 ", 1), "0100007F:A001", "0100007F:2664", 0, false},
	} {
		if uid, ok := peercred.Listed(tc.list, tc.local, tc.remote); ok != tc.ok || ok && uid != tc.uid {
			t.Errorf("%s: user %d, %v; want %d, %v", tc.name, uid, ok, tc.uid, tc.ok)
		}
	}
}

func TestOfAListOnlyWhatWasAskedForIsKept(t *testing.T) {
	t.Parallel()
	var list strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&list, "%d: 0100007F:%04X 0100007F:2664 01 0:0 0:0 0 1000 0 3 1\n", i, i)
	}
	if uid, ok := peercred.Listed(list.String(), "0100007F:0007", "0100007F:2664"); !ok || uid != 1000 {
		t.Errorf("user %d, %v; want 1000", uid, ok)
	}
	if got := peercred.Kept(list.String(), "0100007F:0007", "0100007F:2664"); got != 1 {
		t.Errorf("%d connections are kept, want 1", got)
	}
}

// failing is a listener of a process that has no descriptors left, and then of one that
// has no socket.
type failing struct {
	net.Listener
	tries atomic.Int64
	last  atomic.Bool
}

func (f *failing) Accept() (net.Conn, error) {
	f.tries.Add(1)
	if f.last.Load() {
		return nil, syscall.EBADF
	}
	return nil, syscall.EMFILE
}

func (f *failing) Close() error { return nil }

func TestAnErrorThatStaysIsReportedOnceAndTriedOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var f failing
		l := peercred.Identify(&f)
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Errorf("%v, want %v", err, syscall.EMFILE)
		}
		next := make(chan error)
		go func() {
			_, err := l.Accept()
			next <- err
		}()
		select {
		case err := <-next:
			t.Fatalf("%v is reported twice", err)
		case <-time.After(time.Minute):
		}
		if got := f.tries.Load(); got < 60 || got > 70 {
			t.Errorf("%d tries within a minute, want about one a second", got)
		}
		f.last.Store(true)
		if err := <-next; !errors.Is(err, syscall.EBADF) {
			t.Errorf("%v, want %v", err, syscall.EBADF)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}

func FuzzListed(f *testing.F) {
	f.Add(connections, "0100007F:A001", "0100007F:2664")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, list, local, remote string) {
		if _, ok := peercred.Listed(list, local, remote); ok && (!strings.Contains(list, local) || !strings.Contains(list, remote)) {
			t.Errorf("found %q and %q in %q", local, remote, list)
		}
	})
}

func TestTheKernelSaysWhoseAConnectionIs(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"127.0.0.1:0", "[::1]:0", "[::ffff:127.0.0.1]:0"} {
		var lc net.ListenConfig
		inner, err := lc.Listen(t.Context(), "tcp", at)
		if err != nil {
			t.Logf("%s: %v", at, err)
			continue
		}
		l := peercred.Identify(inner)
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
