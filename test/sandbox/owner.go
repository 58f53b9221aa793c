package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// file holds the owner of a folder.
const file = "owner"

// owner is the process that owns a folder. The kernel reuses a process id, but not
// together with its start time.
type owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"`
}

// Own records that a folder belongs to this process.
func Own(dir string) error {
	start, err := startTime(os.Getpid())
	if err != nil {
		return err
	}
	text, err := json.Marshal(owner{PID: os.Getpid(), Start: start})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, file), text, 0o600)
}

// Orphaned reports whether the process that owns a folder is gone.
func Orphaned(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, file))
	var o owner
	if err != nil || json.Unmarshal(text, &o) != nil {
		// Its owner may be about to write it.
		info, err := os.Stat(dir)
		return err == nil && time.Since(info.ModTime()) > time.Minute
	}
	start, err := startTime(o.PID)
	return err != nil || start != o.Start
}

// Sweep removes the orphaned folders of this user whose names match the pattern.
func Sweep(pattern string, remove func(dir string) error) error {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range found {
		info, err := os.Lstat(dir)
		// Only what this user made: anybody can make such a name.
		if err != nil || !info.IsDir() || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) || !Orphaned(dir) {
			continue
		}
		errs = append(errs, remove(dir))
	}
	return errors.Join(errs...)
}

// Dead reports whether a process is gone or a zombie.
func Dead(pid int) bool {
	fields, err := stat(pid)
	return err != nil || fields[0] == "Z" || fields[0] == "X"
}

// stat are the fields of /proc/PID/stat from the state on.
func stat(pid int) ([]string, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, err
	}
	// The command may hold anything, so count from its closing bracket.
	_, rest, ok := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
	fields := strings.Fields(string(rest))
	if !ok || len(fields) < 20 {
		return nil, fmt.Errorf("stat of process %d: %q", pid, text)
	}
	return fields, nil
}

// startTime is when a process began, in the kernel's ticks.
func startTime(pid int) (uint64, error) {
	fields, err := stat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}
