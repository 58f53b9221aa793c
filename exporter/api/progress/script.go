package progress

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// ErrHidden means that the process is there and does not show its files: it runs what
// its user may not read, or /proc is closed.
var ErrHidden = errors.New("the process does not show its files")

// look is how often a process is looked at that has not begun to run its script. Each
// line that it writes before it is seen may be lost.
const look = time.Millisecond

// Script is the process of a batch script of the caller's own user; a scheduler started the
// caller next to it. Nothing of the job is opened, and no signal is sent.
type Script struct {
	pid   int
	fd    int       // of the process, so that no other under its number is meant
	began time.Time // of the process that it was made by, which opened its output
}

// FindScript returns the process of that number. Close it.
func FindScript(pid int) (*Script, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	t := &Script{pid: pid, fd: fd}
	parent, began, err := birth(pid)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("process %d: %w", pid, err), t.Close())
	}
	t.began = began
	// The parent of a process that init has adopted says nothing.
	if _, made, err := birth(parent); err == nil && parent > 1 {
		t.began = made
	}
	return t, nil
}

// Close lets go of the process.
func (t *Script) Close() error {
	if err := unix.Close(t.fd); err != nil {
		return fmt.Errorf("process %d: %w", t.pid, err)
	}
	return nil
}

// Wait returns when the process has ended, or with the context's error.
func (t *Script) Wait(ctx context.Context) error {
	for {
		fds := []unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}} //nolint:gosec // a descriptor is small
		n, err := unix.Poll(fds, 200)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("process %d: %w", t.pid, ctx.Err())
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("process %d: wait: %w", t.pid, err)
		case n > 0:
			return nil
		}
	}
}

// Output waits until the process runs what its scheduler made it for. It returns the file
// that its standard output goes to, and the size of that when this attempt began: what comes
// before belongs to others. The path is empty where it is not a plain file. A process that
// ends before is fs.ErrNotExist.
func (t *Script) Output(ctx context.Context) (path string, offset int64, err error) {
	ticker := time.NewTicker(look)
	defer ticker.Stop()
	link := t.proc("fd", "1")
	for {
		path, err = os.Readlink(link)
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrPermission) {
			return "", 0, fmt.Errorf("output of process %d: %w", t.pid, err)
		}
		if t.runs() {
			return "", 0, fmt.Errorf("output of process %d: %w: %w", t.pid, ErrHidden, err)
		}
		select {
		case <-ctx.Done():
			return "", 0, fmt.Errorf("output of process %d: %w", t.pid, ctx.Err())
		case <-ticker.C:
		}
	}
	return t.settled(ctx, link, path)
}

// While a shell runs one of its own commands with a redirection, such as "echo >> log", its
// standard output is that file's for a moment, which is long where the machine is busy: two
// looks a blink apart have to agree, and the shell must not have put its own output aside. A
// group of commands may be redirected for as long as it runs: then it is followed there.
const (
	blink = 2 * time.Millisecond
	looks = 250
)

// settled is the file that the link leads to when that does not change any more, and its
// size when the attempt began, as it was at the first look at it: lines may come soon.
func (t *Script) settled(ctx context.Context, link, path string) (string, int64, error) {
	for n := range looks {
		offset, regular := t.Begin(path), false
		if info, err := os.Stat(path); err == nil {
			regular = info.Mode().IsRegular()
		}
		select {
		case <-ctx.Done():
			return "", 0, fmt.Errorf("output of process %d: %w", t.pid, ctx.Err())
		case <-time.After(blink):
		}
		again, err := os.Readlink(link)
		switch {
		case err == nil && again != path:
			path = again
		case n < looks-1 && t.putAside(path):
		case !regular: // a pipe, a device, or a file that is gone: nothing to follow
			return "", 0, nil
		default: // a process that has ended meanwhile changes nothing any more
			return path, offset, nil
		}
	}
	return "", 0, nil
}

// aside is the least descriptor in which shells keep their standard output meanwhile.
const aside = 10

// putAside reports whether the process keeps another file open for writing where shells keep
// their standard output while one of their commands is redirected.
func (t *Script) putAside(output string) bool {
	p, err := procfs.NewProc(t.pid)
	if err != nil {
		return false
	}
	fds, _ := p.FileDescriptors() // what was read of a process that has ended
	return slices.ContainsFunc(fds, func(fd uintptr) bool {
		name := strconv.Itoa(int(fd)) //nolint:gosec // a descriptor is small
		if path, err := os.Readlink(t.proc("fd", name)); fd < aside || err != nil || path == output {
			return false
		}
		info, err := p.FDInfo(name)
		if err != nil {
			return false
		}
		// Open for writing and for no other program, which those are not that a process was
		// started with.
		flags, err := strconv.ParseUint(info.Flags, 8, 64)
		return err == nil && flags&(unix.O_WRONLY|unix.O_RDWR) != 0 && flags&unix.O_CLOEXEC != 0
	})
}

// Begin is the size that a file had when the attempt began: 0 where it was made since,
// else what it is now, which is right where it is still empty.
func (t *Script) Begin(path string) int64 {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_SIZE|unix.STATX_BTIME, &st); err != nil {
		return 0
	}
	if st.Mask&unix.STATX_BTIME != 0 && !time.Unix(st.Btime.Sec, int64(st.Btime.Nsec)).Before(t.began) {
		return 0
	}
	return int64(st.Size) //nolint:gosec // no file is that long
}

// runs reports whether the process is no longer the scheduler's own.
func (t *Script) runs() bool {
	title, err := os.ReadFile(t.proc("cmdline"))
	return err == nil && len(title) > 0 && !strings.HasPrefix(string(title), "slurmstepd")
}

func (t *Script) proc(name ...string) string {
	return filepath.Join(append([]string{"/proc", strconv.Itoa(t.pid)}, name...)...)
}

// ticksPerSecond is what the kernel counts the start of a process in, on every Linux.
const ticksPerSecond = 100

// slack is how much older a file looks that was made when a process began: file systems
// have the time of the last tick, and starts are counted in hundredths of a second.
const slack = 50 * time.Millisecond

func birth(pid int) (parent int, began time.Time, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, time.Time{}, err
	}
	stat, err := p.Stat()
	if err != nil {
		return 0, time.Time{}, fmt.Errorf("stat of %d: %w", pid, err)
	}
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return 0, time.Time{}, fmt.Errorf("time since boot: %w", err)
	}
	booted := time.Now().Add(-time.Duration(up.Nano()))
	return stat.PPID, booted.Add(time.Duration(stat.Starttime) * time.Second / ticksPerSecond).Add(-slack), nil
}
