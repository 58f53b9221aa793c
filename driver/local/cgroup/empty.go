package cgroup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Kill ends every process of the leaf except those named, and returns when they
// are gone or ctx ended.
func (l Leaf) Kill(ctx context.Context, except ...int) error {
	for {
		pids, err := l.Pids()
		if err != nil {
			return err
		}
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(except, pid) || zombie(pid) })
		if len(pids) == 0 {
			return nil
		}
		if len(except) == 0 && l.killAll() {
			pids = nil
		}
		for _, pid := range pids {
			if err := Signal(pid, unix.SIGKILL, func() bool { return l.has(pid) }); err != nil {
				return fmt.Errorf("killing what is in %s: %w", l.name, err)
			}
		}
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			return fmt.Errorf("killing what is left in %s: %w", l.name, err)
		}
	}
}

func (l Leaf) has(pid int) bool {
	pids, err := l.Pids()
	return err == nil && slices.Contains(pids, pid)
}

// killAll uses the kernel's own way, which no fork escapes, where it is offered.
func (l Leaf) killAll() bool {
	if l.tree.Unified == "" {
		return false
	}
	return os.WriteFile(filepath.Join(l.tree.Unified, Parent, l.name, "cgroup.kill"), []byte("1"), 0o200) == nil
}

// Remove removes the leaf with what is below it. A leaf that is not there is no
// error.
func (l Leaf) Remove(ctx context.Context) error {
	for _, dir := range l.Dirs() {
		if err := removeTree(ctx, dir); err != nil {
			return fmt.Errorf("removing cgroup: %w", err)
		}
	}
	return nil
}

func removeTree(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if e.IsDir() {
			if err := removeTree(ctx, filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for range 200 {
		err = unix.Rmdir(dir)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		if !errors.Is(err, unix.EBUSY) {
			break
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", dir, err)
}

// Ended reports whether a process has ended, by the fields that follow its name in
// /proc/PID/stat. The state of a process is its first thread's: it is a zombie's while
// other threads run on, and while one of them executes another program. So the number
// of threads counts too; see proc_pid_stat(5).
func Ended(fields []string) bool {
	return len(fields) > 17 && (fields[0] == "Z" || fields[0] == "X") && (fields[17] == "0" || fields[17] == "1")
}

func zombie(pid int) bool {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return true
	}
	return Ended(strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:])))
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
