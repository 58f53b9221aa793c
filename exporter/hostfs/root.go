package hostfs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// maxFile bounds what is read of one file. The largest that a collector reads,
// cgroup.procs of a job with 100 000 processes, stays below it.
const maxFile = 4 << 20

// Root is where the host's pseudo file systems are mounted. The zero value is the
// machine's own.
type Root struct {
	ProcFS   string // empty = /proc
	SysFS    string // empty = /sys
	CgroupFS string // empty = SysFS/fs/cgroup
}

// Below returns r with the pseudo file systems that it does not name taken from
// below rootfs, where a container has its host's root; "" and "/" change nothing.
func (r Root) Below(rootfs string) Root {
	if rootfs == "" || filepath.Clean(rootfs) == "/" {
		return r
	}
	r.ProcFS = cmp.Or(r.ProcFS, filepath.Join(rootfs, "proc"))
	r.SysFS = cmp.Or(r.SysFS, filepath.Join(rootfs, "sys"))
	return r
}

// Self is the exporter's own process as this /proc numbers it, which in a container
// with its host's /proc is not what the exporter is called inside.
func (r Root) Self() int {
	target, _ := os.Readlink(r.Proc("self")) // else it has no number
	pid, _ := strconv.Atoi(target)
	return cmp.Or(pid, os.Getpid())
}

// Capabilities are those that the exporter has, a bit each; 0 where they are unknown.
func (r Root) Capabilities() uint64 {
	data, _ := Read(r.Proc("self", "status")) // unreadable: it lists none
	set, _ := strconv.ParseUint(Value(data, "CapEff"), 16, 64)
	return set
}

// Proc is a path below /proc.
func (r Root) Proc(parts ...string) string { return below(r.ProcFS, "/proc", parts) }

// Sys is a path below /sys.
func (r Root) Sys(parts ...string) string { return below(r.SysFS, "/sys", parts) }

// Cgroup is a path below the directory that holds the cgroup hierarchies.
func (r Root) Cgroup(parts ...string) string {
	return below(r.CgroupFS, r.Sys("fs", "cgroup"), parts)
}

// Pid is a path below /proc/<pid>.
func (r Root) Pid(pid int, parts ...string) string {
	return filepath.Join(append([]string{r.Proc(strconv.Itoa(pid))}, parts...)...)
}

func below(base, fallback string, parts []string) string {
	return filepath.Join(append([]string{cmp.Or(base, fallback)}, parts...)...)
}

// Read returns the file's content, or the error of opening or reading it; a file
// of more than 4 MiB is an error.
func Read(path string) ([]byte, error) {
	// Most pseudo files fit the stack, so that a reading allocates what it returns.
	var room [pseudo]byte
	data, err := readInto(room[:0], path)
	if err != nil {
		return nil, err
	}
	return bytes.Clone(data), nil
}

// Text is what a file of one line says; empty where it cannot be read.
func Text(path string) string {
	data, _ := Read(path)
	return strings.TrimSpace(string(data))
}

// pseudo is as large as nearly all pseudo files are at most.
const pseudo = 4096

// whole is how long a first reading may be that needs no second one to see the end: the
// kernel fills what it is given, up to one of its pages, but for a last line that does not
// fit. None of those that are read here is as long.
const whole = pseudo / 2

// Buffer is room to read one file after the other. It grows where it has to.
type Buffer []byte

// Read is Read into the buffer: what it returns is valid until the next call.
func (b *Buffer) Read(path string) ([]byte, error) {
	data, err := readInto(*b, path)
	if err == nil {
		*b = data
	}
	return data, err
}

// readInto calls the kernel by itself: an os.File is made to be waited for, which costs as
// much again as reading a small file.
func readInto(buf []byte, path string) ([]byte, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }() // only read
	buf = slices.Grow(buf[:0], pseudo)
	// Pseudo files have no size, so they are read in steps. Most fit the first.
	for {
		n, err := retry(func() (int, error) { return unix.Read(fd, buf[len(buf):cap(buf)]) })
		switch {
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0 || len(buf)+n < whole:
			return buf[:len(buf)+n], nil
		}
		buf = buf[:len(buf)+n]
		if len(buf) > maxFile {
			return nil, fmt.Errorf("read %s: more than %d bytes", path, maxFile)
		}
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, len(buf))
		}
	}
}

// retry calls again what a signal interrupted.
func retry(call func() (int, error)) (int, error) {
	for {
		n, err := call()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
