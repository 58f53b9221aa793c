package peercred

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// To list connections the kernel walks through all of the machine, which takes tens of
// milliseconds: it is done once for so many that wait, and a tenth of the time at most.
const (
	listedAtOnce = 512
	listAgain    = 20 * time.Millisecond
	restShare    = 9
)

// How long to wait after an error, such as of a process that has no descriptors left.
const (
	failedPause    = 5 * time.Millisecond // twice as long after each further one,
	maxFailedPause = time.Second          // and at most so long
)

// Identify returns a listener over TCP that knows the users of this machine. The
// connections are Conns; of others Of has the address.
func Identify(l net.Listener) net.Listener {
	return &identified{Listener: l, arrived: make(chan accepted, listedAtOnce), ready: make(chan accepted), closed: make(chan struct{})}
}

type accepted struct {
	conn net.Conn
	err  error
}

type identified struct {
	net.Listener
	begin, end     sync.Once
	arrived, ready chan accepted
	closed         chan struct{}
}

// Accept implements net.Listener.
func (l *identified) Accept() (net.Conn, error) {
	l.begin.Do(func() {
		go l.receive()
		go l.identify()
	})
	select {
	case a := <-l.ready:
		return a.conn, a.err
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *identified) Close() error {
	l.end.Do(func() { close(l.closed) })
	return l.Listener.Close() //nolint:wrapcheck // it is the listener
}

// receive reports an error once until a connection arrives, since http.Server logs it.
func (l *identified) receive() {
	said, pause := "", time.Duration(0)
	for {
		conn, err := l.Listener.Accept()
		if err == nil {
			said, pause = "", 0
		}
		if (err == nil || err.Error() != said) && !l.pass(l.arrived, accepted{conn, err}) {
			return
		}
		if err == nil {
			continue
		}
		said, pause = err.Error(), min(max(2*pause, failedPause), maxFailedPause)
		select {
		case <-time.After(pause):
		case <-l.closed:
			return
		}
	}
}

// pass hands on what was accepted, unless the listener is closed.
func (l *identified) pass(to chan<- accepted, a accepted) bool {
	select {
	case <-l.closed:
	default:
		select {
		case to <- a:
			return true
		case <-l.closed:
		}
	}
	if a.conn != nil {
		_ = a.conn.Close() // nothing was read from it
	}
	return false
}

func (l *identified) identify() {
	for {
		var batch []accepted
		select {
		case a := <-l.arrived:
			batch = append(batch, a)
		case <-l.closed:
			l.drop()
			return
		}
		for len(l.arrived) > 0 && len(batch) < listedAtOnce {
			batch = append(batch, <-l.arrived)
		}
		// They are open, so that no other has the same two ends in a list that is read now.
		began := time.Now()
		users := owners(batch)
		pause := max(restShare*time.Since(began), listAgain)
		for _, a := range batch {
			if a.conn != nil {
				who, err := users.of(a.conn)
				a.conn = &Conn{Conn: a.conn, Caller: who, err: err, leave: func() {}}
			}
			l.pass(l.ready, a)
		}
		select {
		case <-time.After(pause):
		case <-l.closed:
		}
	}
}

// drop closes what was accepted and not handed on.
func (l *identified) drop() {
	for len(l.arrived) > 0 {
		l.pass(nil, <-l.arrived)
	}
}

// users have the users of the connections that were asked for.
type users map[ends]*uint32

// ends are both ends of a connection as the kernel prints them.
type ends [2]string

func owners(batch []accepted) users {
	out := users{}
	for _, a := range batch {
		if a.conn != nil {
			out.ask(both(a.conn)...)
		}
	}
	for _, path := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if f, err := os.Open(path); err == nil { // else a machine without IPv6
			out.read(f)
			_ = f.Close() // only read
		}
	}
	return out
}

func (u users) ask(keys ...ends) {
	for _, k := range keys {
		uid := Nobody
		u[k] = &uid
	}
}

// both are a connection's ends in the lists of IPv4 and of IPv6.
func both(conn net.Conn) (out []ends) {
	from, err1 := netip.ParseAddrPort(conn.RemoteAddr().String())
	to, err2 := netip.ParseAddrPort(conn.LocalAddr().String())
	if err1 != nil || err2 != nil {
		return nil
	}
	return []ends{{hex4(from), hex4(to)}, {hex6(from), hex6(to)}}
}

// read reads the form of /proc/net/tcp: number, both ends, state, two queues, a timer,
// retransmissions, and then the user. Anybody can fill it with connections, so that
// nothing of a line is kept.
func (u users) read(r io.Reader) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		if !bytes.Contains(lines.Bytes(), []byte(" 01 ")) {
			continue // of a connection that is not open, as of many that were closed lately
		}
		f := bytes.Fields(lines.Bytes())
		if len(f) < 8 || string(f[3]) != "01" {
			continue
		}
		asked := u[ends{string(f[1]), string(f[2])}]
		if asked == nil {
			continue
		}
		if uid, err := strconv.ParseUint(string(f[7]), 10, 32); err == nil {
			*asked = uint32(uid)
		}
	}
}

// of is who opened a connection; the error is ErrUnknown.
func (u users) of(conn net.Conn) (Caller, error) {
	unknown := elsewhere(conn)
	if addr := unknown.Share.Addr; !addr.IsLoopback() {
		return unknown, fmt.Errorf("%w: %s is another machine's", ErrUnknown, addr)
	}
	for _, k := range both(conn) {
		if uid := u[k]; uid != nil && *uid != Nobody {
			return Caller{UID: *uid, Share: Share{UID: *uid}}, nil
		}
	}
	return unknown, fmt.Errorf("%w: the kernel lists no such connection", ErrUnknown)
}

// elsewhere is a caller of whom only the address is known.
func elsewhere(conn net.Conn) Caller {
	who := Caller{UID: Nobody, Share: Share{UID: Nobody}}
	if at := conn.RemoteAddr(); at != nil {
		from, _ := netip.ParseAddrPort(at.String()) // else all of that kind share
		who.Share.Addr = from.Addr().Unmap()
	}
	return who
}

// hex4 is an address as the kernel prints it, each word in the machine's own order.
func hex4(a netip.AddrPort) string {
	ip := a.Addr().Unmap()
	if !ip.Is4() {
		return ""
	}
	b := ip.As4()
	return fmt.Sprintf("%08X:%04X", binary.NativeEndian.Uint32(b[:]), a.Port())
}

// hex6 is the same of IPv6, in which an address of IPv4 may stand too.
func hex6(a netip.AddrPort) string {
	b := a.Addr().As16()
	var out strings.Builder
	for i := 0; i < len(b); i += 4 {
		fmt.Fprintf(&out, "%08X", binary.NativeEndian.Uint32(b[i:]))
	}
	return fmt.Sprintf("%s:%04X", out.String(), a.Port())
}
