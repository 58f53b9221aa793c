package peercred

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"

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

// Of returns who opened a connection. With an error the uid is Nobody, and the share that
// of the address.
func Of(conn net.Conn) (Caller, error) {
	who, err := user(conn)
	if err == nil {
		who.find(conn)
	}
	return who, err
}

// user is the cheap part of Of: all but Start.
func user(conn net.Conn) (Caller, error) {
	if c, ok := conn.(*Conn); ok {
		return c.Caller, c.err
	}
	var cred *unix.Ucred
	if err := control(conn, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err //nolint:wrapcheck // it is wrapped below
	}); err != nil {
		return elsewhere(conn), fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return Caller{UID: cred.Uid, PID: int(cred.Pid), Share: Share{UID: cred.Uid}}, nil
}

// control runs ask on the descriptor of a Unix socket.
func control(conn net.Conn, ask func(fd int) error) error {
	c, ok := conn.(*net.UnixConn)
	if !ok {
		return errors.New("not a Unix socket")
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err //nolint:wrapcheck // user wraps it
	}
	var asked error
	err = raw.Control(func(fd uintptr) { asked = ask(int(fd)) })
	return errors.Join(err, asked)
}

// find sets when the caller's process began. Of a Conn that is known.
func (c *Caller) find(conn net.Conn) {
	if c.PID > 0 {
		_ = control(conn, func(fd int) error { c.Start = c.start(fd); return nil }) // else it stays unknown
	}
}

func (c *Caller) start(fd int) uint64 {
	start := Started(c.PID)
	// The number may be another process's by now, whose start that would be.
	switch pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD); {
	case err == nil:
		if err := unix.PidfdSendSignal(pidfd, 0, nil, 0); err != nil && !errors.Is(err, unix.EPERM) {
			start = 0
		}
		_ = unix.Close(pidfd)
	case !errors.Is(err, unix.ENOPROTOOPT):
		start = 0 // it has ended
	case owner(c.PID) != c.UID: // a kernel before 6.5
		start = 0
	}
	return start
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

func owner(pid int) uint32 {
	info, err := os.Stat("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return Nobody
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return Nobody
	}
	return st.Uid
}
