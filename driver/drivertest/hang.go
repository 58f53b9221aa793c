package drivertest

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// Hang returns a directory in which every look at a file hangs until the test ends, as on a file
// system of a server that is lost. It skips the test where this process may not mount.
func Hang(t *testing.T) string {
	t.Helper()
	// The kernel waits for the first answer of a FUSE server, which this test never gives.
	server, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Skip("no file system can be made to hang: ", err)
	}
	dir := t.TempDir() // removed after what is cleaned up below
	data := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", server)
	if err := unix.Mount("hang", dir, "fuse", unix.MS_NOSUID|unix.MS_NODEV, data); err != nil {
		t.Skip("no file system can be made to hang: ", err)
	}
	t.Cleanup(func() {
		// Without its server it fails whatever waits for it.
		if err := unix.Close(server); err != nil {
			t.Error(err)
		}
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}
