package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// Process is one line of the process table.
type Process struct {
	PID, Parent, Session int
	Ended                bool
	Start                uint64 // field starttime: number and start together name one process
	RSS                  int64  // bytes
}

// ReadProcess reads /proc/PID/stat (see proc_pid_stat(5)).
func ReadProcess(pid int) (Process, error) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return Process{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return parseStat(pid, data)
}

func parseStat(pid int, data []byte) (Process, error) {
	f, last := hostfs.ParseProcStat(data)
	if last < 24 {
		return Process{}, fmt.Errorf("process %d: stat has %d fields", pid, last)
	}
	state := bytes.TrimSpace(data[bytes.LastIndexByte(data, ')')+1:])[0]
	return Process{
		PID: pid, Parent: int(f[4]), Session: int(f[6]), Start: f[22], RSS: int64(f[24]) * int64(os.Getpagesize()),
		// The state of a process is its first thread's: it is a zombie's while other threads run
		// on, and while one of them executes another program. So the number of threads counts too.
		Ended: (state == 'Z' || state == 'X') && f[20] <= 1,
	}, nil
}

// Lives reports whether the number still is this process's.
func (p Process) Lives() bool {
	now, err := ReadProcess(p.PID)
	return err == nil && now.Start == p.Start
}

// Signal signals the process with a number that was read a moment ago, if it still is the
// one that is meant. It is held (see pidfd_open(2)) before that check, so that none that gets the
// number afterwards is signalled. One that is gone is not an error.
func Signal(pid int, sig unix.Signal, still func() bool) (err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ENOSYS) && still() { // before Linux 5.3: better than nothing
		err = unix.Kill(pid, sig)
	} else if err == nil {
		defer func() { err = errors.Join(err, unix.Close(fd)) }()
		if still() {
			err = unix.PidfdSendSignal(fd, sig, nil, 0)
		}
	}
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	return nil
}
