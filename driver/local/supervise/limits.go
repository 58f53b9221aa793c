package supervise

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// userMask is the umask of a login.
const userMask = 0o022

// userLimits are what a login has at most where an administrator says nothing else: the
// scheduler's own, which its service may have raised, are not for its jobs.
func userLimits() (map[int]unix.Rlimit, error) {
	var boot unix.Rlimit // of the machine's first process: what the kernel thinks fit
	if err := unix.Prlimit(1, unix.RLIMIT_NPROC, nil, &boot); err != nil {
		return nil, fmt.Errorf("limits of the machine: %w", err)
	}
	return map[int]unix.Rlimit{
		unix.RLIMIT_CORE:    {Cur: 0, Max: unix.RLIM_INFINITY},
		unix.RLIMIT_MEMLOCK: {Cur: 8 << 20, Max: 8 << 20},
		unix.RLIMIT_NOFILE:  {Cur: 1024, Max: 512 << 10},
		unix.RLIMIT_NPROC:   boot,
	}, nil
}

// limit lowers the process's limits to those of a login.
func limit() error {
	limits, err := userLimits()
	if err != nil {
		return err
	}
	for resource, most := range limits {
		var now unix.Rlimit
		if err := unix.Getrlimit(resource, &now); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
		now.Max = min(now.Max, most.Max)
		now.Cur = min(now.Cur, most.Cur, now.Max)
		if err := unix.Setrlimit(resource, &now); err != nil {
			return fmt.Errorf("limit %d: %w", resource, err)
		}
	}
	unix.Umask(userMask)
	return nil
}
