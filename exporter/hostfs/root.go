package hostfs

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
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
	if r.ProcFS == "" {
		r.ProcFS = filepath.Join(rootfs, "proc")
	}
	if r.SysFS == "" {
		r.SysFS = filepath.Join(rootfs, "sys")
	}
	return r
}

// Self is the exporter's own process as this /proc numbers it, which in a container
// with its host's /proc is not what the exporter is called inside.
func (r Root) Self() int {
	if target, err := os.Readlink(r.Proc("self")); err == nil {
		if pid, err := strconv.Atoi(target); err == nil {
			return pid
		}
	}
	return os.Getpid()
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
	if base == "" {
		base = fallback
	}
	return filepath.Join(append([]string{base}, parts...)...)
}

// Read returns the file's content, or the error of opening or reading it; a file
// of more than 4 MiB is an error.
func Read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	// Pseudo files have no size, so they are read in steps. Most fit the first.
	buf := make([]byte, 0, 2048)
	for {
		n, err := f.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		if err == io.EOF {
			return buf, nil
		}
		if err != nil {
			return nil, err
		}
		if len(buf) > maxFile {
			return nil, fmt.Errorf("read %s: more than %d bytes", path, maxFile)
		}
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
	}
}
