package local_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// machine tells the cores and bytes that a driver takes when told nothing.
func machine(t *testing.T) (cores int, bytes int64) {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	return set.Count(), int64(info.Totalram) * int64(info.Unit)
}
