package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	return parseStat(pid, string(data))
}

func parseStat(pid int, text string) (Process, error) {
	// The name may hold anything, so that only what follows its last bracket can
	// be split.
	end := strings.LastIndex(text, ")")
	f := strings.Fields(text[end+1:])
	if end < 0 || len(f) < 22 {
		return Process{}, fmt.Errorf("process %d: stat has %d fields", pid, len(f))
	}
	var failed error
	number := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			failed = fmt.Errorf("process %d: stat field %d: %w", pid, i+3, err)
		}
		return n
	}
	p := Process{
		PID: pid, Parent: int(number(1)), Session: int(number(3)), Start: uint64(number(19)), RSS: number(21) * int64(os.Getpagesize()),
		// The state of a process is its first thread's: it is a zombie's while other threads run
		// on, and while one of them executes another program. So the number of threads counts too.
		Ended: (f[0] == "Z" || f[0] == "X") && (f[17] == "0" || f[17] == "1"),
	}
	return p, failed
}

// Lives reports whether the number still is this process's.
func (p Process) Lives() bool {
	now, err := ReadProcess(p.PID)
	return err == nil && now.Start == p.Start
}

// Signal signals the process with a number that was read a moment ago, if it still is the
// one that is meant. It is held (see pidfd_open(2)) before that question is asked, so that
// none that gets the number afterwards is signalled. One that is gone is no error.
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
