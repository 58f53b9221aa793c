package faultslurm_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	parent = "/tmp"
	prefix = "ppslurm-fault-"
)

// newFolder is the folder of this test's world, which every user can reach. Its name
// has the process's number, so that the next one clears away what is left of it.
func newFolder() (string, error) {
	dir, err := os.MkdirTemp(parent, prefix+strconv.Itoa(os.Getpid())+"-")
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755) //nolint:gosec // other users run what is in it
}

// sweep clears away what is left of tests that were killed: small disks and folders.
func sweep() error {
	found, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		pid, err := strconv.Atoi(number)
		if err != nil || syscall.Kill(pid, 0) == nil {
			continue
		}
		info, err := os.Lstat(dir)
		// Only what this user made: anybody can make such a name.
		if err != nil || !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
			continue
		}
		states, err := filepath.Glob(filepath.Join(dir, "state-*"))
		errs = append(errs, err)
		for _, s := range states {
			if err := unix.Unmount(s, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
				errs = append(errs, err)
			}
		}
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}
