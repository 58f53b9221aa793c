package cgroup

import (
	"io/fs"
	"syscall"
	"testing"
)

// A kernel whose accounting of pressure is turned off has its files and refuses to read them.
func TestWhatTheKernelDoesNotSupportIsMissingAndNoFault(t *testing.T) {
	t.Parallel()
	for err, fault := range map[syscall.Errno]bool{syscall.ENOENT: false, syscall.EOPNOTSUPP: false, syscall.EIO: true} {
		if got := ignoreMissing("pressure", &fs.PathError{Op: "read", Path: "cpu.pressure", Err: err}); (got != nil) != fault {
			t.Errorf("%v: error %v, want one: %v", err, got, fault)
		}
	}
}
