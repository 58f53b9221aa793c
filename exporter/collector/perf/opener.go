package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Attr names an event as the kernel does.
type Attr struct {
	Type                     uint32
	Config, Config1, Config2 uint64
}

// Where is what a group counts: one CPU, for the processes of a cgroup, or for
// everything that runs there where Cgroup is nil.
type Where struct {
	Cgroup *os.File // its directory
	CPU    int
}

// Counts is what a group has counted since it was opened.
type Counts struct {
	Enabled, Running uint64   // ns; Running is less where others had the counters
	Values           []uint64 // in the order of the events
	Detached         bool     // the CPU has gone: these are the last
}

// Group is events that count together or not at all.
type Group interface {
	// Read puts the counts into c, whose Values it may use again.
	Read(c *Counts) error
	Close() error
}

// Opener opens groups; Kernel is the real one. Errors are the kernel's: EACCES and
// EPERM (denied), ENOENT, EOPNOTSUPP and ENODEV (no such event, no such CPU), EINVAL
// (the event does not go there, or the group does not fit the PMU), EMFILE.
type Opener interface {
	Open(events []Attr, on Where) (Group, error)
}

// Kernel opens groups by system calls. Descriptors are closed on exec. The last of those
// that the process may have are left to files and connections: what
// does not fit in the others is refused by EMFILE.
type Kernel struct{}

// header is number of events, time enabled, time running.
const header = 24

// Open opens the events, with the first as leader, and begins to count.
func (Kernel) Open(events []Attr, on Where) (Group, error) {
	pid, flags := -1, unix.PERF_FLAG_FD_CLOEXEC
	if on.Cgroup != nil {
		// In cgroup mode the process id is the descriptor of the cgroup's directory.
		pid, flags = int(on.Cgroup.Fd()), flags|unix.PERF_FLAG_PID_CGROUP
	}
	g := &group{buf: make([]byte, header+8*len(events))}
	leader, end := -1, room()
	for i, e := range events {
		attr := unix.PerfEventAttr{
			Type: e.Type, Config: e.Config, Ext1: e.Config1, Ext2: e.Config2,
			Size:        uint32(unsafe.Sizeof(unix.PerfEventAttr{})),
			Read_format: unix.PERF_FORMAT_GROUP | unix.PERF_FORMAT_TOTAL_TIME_ENABLED | unix.PERF_FORMAT_TOTAL_TIME_RUNNING,
		}
		if i == 0 {
			attr.Bits = unix.PerfBitDisabled
		}
		fd, err := unix.PerfEventOpen(&attr, pid, on.CPU, leader, flags)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("perf_event_open: %w", err), g.Close())
		}
		g.fds = append(g.fds, fd)
		leader = g.fds[0]
		if fd >= end {
			return nil, errors.Join(fmt.Errorf("perf_event_open: %w: the last descriptors are not for events", unix.EMFILE), g.Close())
		}
	}
	if len(g.fds) == 0 {
		return nil, fmt.Errorf("perf_event_open: %w: a group without events", unix.EINVAL)
	}
	if err := unix.IoctlSetInt(leader, unix.PERF_EVENT_IOC_ENABLE, unix.PERF_IOC_FLAG_GROUP); err != nil {
		return nil, errors.Join(fmt.Errorf("perf: enable: %w", err), g.Close())
	}
	return g, nil
}

// reserve is how many descriptors events leave to all else: the connections that are
// served at a time, which are about 1100 at most, and the files that are open for a moment.
// Where there are few it is half of them.
const reserve = 1280

// room is the first descriptor that is not for events. The kernel gives the lowest that is
// free, so that where it gives this one all below are taken.
func room() int {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur > 1<<30 {
		return 1 << 30
	}
	return int(limit.Cur - min(reserve, limit.Cur/2))
}

type group struct {
	fds []int // the first leads
	buf []byte
}

func (g *group) Read(c *Counts) error {
	if len(g.fds) == 0 {
		return fmt.Errorf("perf: read: %w", os.ErrClosed)
	}
	if err := g.read(g.fds[0], c); err != nil {
		return err
	}
	c.Detached = len(c.Values) < len(g.fds)
	if !c.Detached {
		return nil
	}
	// The CPU went offline, and the kernel takes its groups apart: each event still
	// answers for itself.
	var own Counts
	for _, fd := range g.fds[len(c.Values):] {
		if err := g.read(fd, &own); err != nil {
			return err
		}
		c.Values = append(c.Values, own.Values[0])
	}
	return nil
}

func (g *group) read(fd int, c *Counts) error {
	n, err := unix.Read(fd, g.buf)
	if err != nil {
		return fmt.Errorf("perf: read: %w", err)
	}
	return decode(g.buf[:n], c)
}

// decode reads what the kernel answers for a group: the number of events, the two
// times, and a value each. It is an error without any value.
func decode(buf []byte, c *Counts) error {
	if len(buf) < header+8 {
		return fmt.Errorf("perf: read: %d bytes, want at least %d", len(buf), header+8)
	}
	n := binary.NativeEndian.Uint64(buf)
	if n < 1 || n > uint64(len(buf)-header)/8 {
		return fmt.Errorf("perf: read: %d events in %d bytes", n, len(buf))
	}
	c.Enabled, c.Running = binary.NativeEndian.Uint64(buf[8:]), binary.NativeEndian.Uint64(buf[16:])
	c.Values = slices.Grow(c.Values[:0], int(n))[:n]
	for i := range c.Values {
		c.Values[i] = binary.NativeEndian.Uint64(buf[header+8*i:])
	}
	return nil
}

func (g *group) Close() error {
	var errs []error
	for _, fd := range g.fds {
		errs = append(errs, unix.Close(fd))
	}
	g.fds = nil
	return errors.Join(errs...)
}
