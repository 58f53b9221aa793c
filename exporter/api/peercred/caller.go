package peercred

import (
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

// user is the cheap part of Of: all but Start.
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

// control runs ask on the descriptor of a socket.
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

// Started returns when a process began, in ticks after boot; 0 = there is none. A number
// recurs only after all others, which takes many ticks.
func Started(pid int) uint64 {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0
	}
	stat, err := p.Stat()
	if err != nil {
		return 0
	}
	return stat.Starttime
}
