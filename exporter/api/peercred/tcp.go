package peercred

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

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
