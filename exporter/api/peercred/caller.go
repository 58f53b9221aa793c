package peercred

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ErrUnknown means that the kernel does not say who opened a connection.
var ErrUnknown = errors.New("caller unknown")

// Nobody is a uid that the kernel never gives.
const Nobody = ^uint32(0)

// Caller is who opened a connection.
type Caller struct {
	UID   uint32
	PID   int    // 0 = in a process namespace that is not seen from here, or not local
	Start uint64 // when that process began, in ticks after boot; 0 = it had ended when the connection was accepted
	Share Share
}

// String names the caller for a log.
func (c Caller) String() string {
	if c.UID == Nobody {
		return "an unknown user at " + c.Share.Addr.String()
	}
	return "user " + strconv.FormatUint(uint64(c.UID), 10)
}

// Share names what Listener and others count together.
type Share struct {
	UID  uint32     // the user, and the owner of subordinate uids
	Addr netip.Addr // of a caller over TCP whose user is unknown
}

// Of returns who opened a connection, over a Unix socket or, without the process, over TCP from
// this machine. With an error the uid is Nobody, and the share that of the address.
func Of(conn net.Conn) (Caller, error) {
	who, err := user(conn)
	if c, ok := conn.(*net.UnixConn); ok && err == nil {
		who.find(c)
	}
	return who, err
}

func user(conn net.Conn) (who Caller, err error) {
	switch c := conn.(type) {
	case *Conn:
		return c.Caller, c.err
	case *net.UnixConn:
		err = control(c, func(fd int) error {
			cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
			if err == nil {
				who.UID, who.PID = cred.Uid, int(cred.Pid)
			}
			return err //nolint:wrapcheck // it is wrapped below
		})
	default:
		if err = errors.New("no address"); conn.RemoteAddr() != nil {
			who.UID, err = tcpUser(conn)
		}
	}
	if err == nil {
		who.Share.UID = who.UID
		return who, nil
	}
	who = Caller{UID: Nobody, Share: Share{UID: Nobody}}
	if at := conn.RemoteAddr(); at != nil {
		from, _ := netip.ParseAddrPort(at.String()) // else all of that kind share
		who.Share.Addr = from.Addr().Unmap()
	}
	return who, fmt.Errorf("%w: %w", ErrUnknown, err)
}

func control(c *net.UnixConn, ask func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err //nolint:wrapcheck // user wraps it
	}
	var asked error
	err = raw.Control(func(fd uintptr) { asked = ask(int(fd)) })
	return errors.Join(err, asked)
}

// find sets when the caller's process began, unless it has ended.
func (c *Caller) find(conn *net.UnixConn) {
	if c.PID == 0 {
		return
	}
	start := Started(c.PID)
	_ = control(conn, func(fd int) error { // else it stays unknown
		// The number may be another process's by now, whose start that would be.
		pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		switch {
		case errors.Is(err, unix.ENOPROTOOPT): // a kernel before 6.5
			var st unix.Stat_t
			if unix.Stat("/proc/"+strconv.Itoa(c.PID), &st) == nil && st.Uid == c.UID {
				c.Start = start
			}
		case err == nil:
			if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err == nil || errors.Is(err, unix.EPERM) {
				c.Start = start
			}
			_ = unix.Close(pidfd)
		}
		return nil
	})
}

// Started returns when a process began, in ticks after boot; 0 = none. A number
// recurs only after all others, which takes many ticks.
func Started(pid int) uint64 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, _ := p.Stat() // 0 where it has ended
	return stat.Starttime
}

// diagRequest asks the kernel for one TCP socket, by both its ends: struct nlmsghdr and struct
// inet_diag_req_v2 of sock_diag(7).
type diagRequest struct {
	Length           uint32
	Type, Flags      uint16
	Sequence, Port   uint32
	Family, Protocol uint8
	_                [2]uint8
	States           uint32
	From, To         [2]uint8 // ports, in the order of the network
	Source, Dest     [16]uint8
	Interface        uint32
	Cookie           [2]uint32
}

// Of struct inet_diag_msg in the answer.
const (
	byFamily   = 20 // SOCK_DIAG_BY_FAMILY
	headLength = 16
	stateAt    = headLength + 1
	uidAt      = headLength + 64
	open       = 1 // TCP_ESTABLISHED
)

// tcpUser returns the user of this machine at the other end of a connection over TCP.
func tcpUser(conn net.Conn) (uint32, error) {
	from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
	if err != nil || !from.Addr().Unmap().IsLoopback() {
		return 0, fmt.Errorf("%s is not on this machine", conn.RemoteAddr())
	}
	to, err := netip.ParseAddrPort(conn.LocalAddr().String())
	if err != nil {
		return 0, err //nolint:wrapcheck // user wraps it
	}
	q := diagRequest{
		Type: byFamily, Flags: unix.NLM_F_REQUEST, Family: unix.AF_INET6, Protocol: unix.IPPROTO_TCP, States: 1 << open,
		Source: from.Addr().As16(), Dest: to.Addr().As16(), Cookie: [2]uint32{^uint32(0), ^uint32(0)},
	}
	if ip := from.Addr().Unmap(); ip.Is4() {
		q.Family, q.Source, q.Dest = unix.AF_INET, [16]uint8{}, [16]uint8{}
		copy(q.Source[:], ip.AsSlice())
		copy(q.Dest[:], to.Addr().Unmap().AsSlice())
	}
	binary.BigEndian.PutUint16(q.From[:], from.Port())
	binary.BigEndian.PutUint16(q.To[:], to.Port())
	q.Length = uint32(binary.Size(q)) //nolint:gosec // 72
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
	if err != nil {
		return 0, fmt.Errorf("ask the kernel for sockets: %w", err)
	}
	defer func() { _ = unix.Close(fd) }() // only read
	data, err := binary.Append(nil, binary.NativeEndian, q)
	if err == nil {
		err = unix.Sendto(fd, data, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK})
	}
	answer := make([]byte, 4<<10)
	n := 0
	if err == nil {
		n, _, err = unix.Recvfrom(fd, answer, unix.MSG_DONTWAIT) // it is there already
	}
	if err != nil {
		return 0, fmt.Errorf("ask the kernel for a socket: %w", err)
	}
	if n < uidAt+4 || binary.NativeEndian.Uint16(answer[4:]) != byFamily || answer[stateAt] != open {
		return 0, errors.New("the kernel knows no such connection")
	}
	return binary.NativeEndian.Uint32(answer[uidAt:]), nil
}
