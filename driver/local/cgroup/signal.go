package cgroup

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

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
