package peercred

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// To look for a connection the kernel walks through all connections of the machine: so
// many looks in a second, and so many at once after a while without any.
const looksPerSecond, looksAtOnce = 20, 100

var errBusy = errors.New("too many connections were looked up within this second")

// TCP identifies who opened connections over TCP: of this machine the user, of another
// one its address.
type TCP struct {
	mu   sync.Mutex
	left Allowance
}

// Remote is a caller of whom only the address is known.
func Remote(conn net.Conn) Caller {
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // else all of that kind share
	return Caller{UID: Nobody, Share: Share{UID: Nobody, Addr: from.Addr().Unmap()}}
}

// Of returns who opened a connection. Its error is ErrUnknown for callers of another
// machine too, and where too many have been looked up lately.
func (t *TCP) Of(conn net.Conn) (Caller, error) {
	unknown := Remote(conn)
	if addr := unknown.Share.Addr; !addr.IsLoopback() {
		return unknown, fmt.Errorf("%w: %s is another machine's", ErrUnknown, addr)
	}
	t.mu.Lock()
	may := t.left.Take(time.Now(), looksPerSecond, looksAtOnce)
	t.mu.Unlock()
	if !may {
		return unknown, fmt.Errorf("%w: %w", ErrUnknown, errBusy)
	}
	uid, err := ownerOf(conn.RemoteAddr(), conn.LocalAddr())
	if err != nil {
		return unknown, fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Caller{UID: uid, Share: Share{UID: uid}}, nil
}

var errNoSocket = errors.New("the kernel lists no such connection")

// owner is the user whose socket is one end of a TCP connection, as the kernel lists it.
func ownerOf(local, remote net.Addr) (uint32, error) {
	from, err1 := netip.ParseAddrPort(local.String())
	to, err2 := netip.ParseAddrPort(remote.String())
	if err := errors.Join(err1, err2); err != nil {
		return 0, err
	}
	for _, list := range []struct {
		path string
		hex  func(netip.AddrPort) string
	}{{"/proc/self/net/tcp", hex4}, {"/proc/self/net/tcp6", hex6}} {
		f, err := os.Open(list.path)
		if err != nil {
			continue // a machine without IPv6
		}
		uid, ok := connectionOf(bufio.NewScanner(f), list.hex(from), list.hex(to))
		_ = f.Close() // only read
		if ok {
			return uid, nil
		}
	}
	return 0, errNoSocket
}

// connectionOf finds one in the form of /proc/net/tcp: number, both ends, state, two
// queues, a timer, retransmissions, and then the user.
func connectionOf(lines *bufio.Scanner, local, remote string) (uint32, bool) {
	if local == "" || remote == "" {
		return 0, false
	}
	for lines.Scan() {
		if !strings.Contains(lines.Text(), local) {
			continue
		}
		f := strings.Fields(lines.Text())
		if len(f) < 8 || f[1] != local || f[2] != remote {
			continue
		}
		uid, err := strconv.ParseUint(f[7], 10, 32)
		return uint32(uid), err == nil
	}
	return 0, false
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
