package server

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"pitchpipe/exporter/metrics"
)

// scrape shows the node to everybody, and of the jobs those that the caller may see.
func (s *Server) scrape(w http.ResponseWriter, r *http.Request) {
	p, err := peerOf(r.Context())
	switch {
	case s.cfg.ShowJobs || err == nil && p.all:
	case err != nil:
		r = r.WithContext(metrics.For(r.Context(), metrics.View{}))
	default:
		r = r.WithContext(metrics.For(r.Context(), metrics.View{Some: true, UID: p.uid}))
	}
	s.metrics.ServeHTTP(w, r)
}

// onLoopback tells who opened a connection from this machine over TCP.
func (s *Server) onLoopback(c net.Conn) peerResult {
	uid, err := owner(c.RemoteAddr(), c.LocalAddr())
	if err != nil {
		return peerResult{err: fmt.Errorf("who asks: %w", err)}
	}
	return peerResult{peer: s.peer(0, uid)}
}

var errNoSocket = errors.New("the kernel lists no such connection")

// owner is the user whose socket is one end of a TCP connection, as the kernel lists it.
func owner(local, remote net.Addr) (uint32, error) {
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
