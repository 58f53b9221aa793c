package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	mostText     = 1 << 20         // of a script; longer ones are not ours
	filePatience = 5 * time.Second // for a filesystem that does not answer
)

// file looks at one path. A look that hangs, as on a server of files that is away, is
// given up.
func file(ctx context.Context, path string) File {
	if path == "" {
		return File{}
	}
	ctx, cancel := context.WithTimeout(ctx, filePatience)
	defer cancel()
	done := make(chan File, 1)
	go func() {
		f, err := lookAt(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			f.Seen = Absent
		case err != nil:
			f.Seen = Closed
		}
		done <- f
	}()
	select {
	case f := <-done:
		return f
	case <-ctx.Done():
		return File{Path: path, Seen: Closed}
	}
}

func lookAt(path string) (File, error) {
	f := File{Path: path, Seen: Present}
	info, err := os.Stat(path)
	if err != nil {
		return f, err
	}
	f.Mode, f.Open, f.FS = info.Mode(), open(path), filesystem(path)
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		f.Owner = account(st.Uid)
	}
	if !info.Mode().IsRegular() {
		return f, nil
	}
	r, err := os.Open(path)
	if err != nil {
		return f, err
	}
	defer r.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(r, mostText))
	f.Text = string(text)
	return f, err
}

// open reports whether every account can enter the folders above.
func open(path string) bool {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for dir := filepath.Dir(target); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func account(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// filesystem names the kind of a filesystem; package unix does not know the last four.
func filesystem(path string) string {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "a filesystem that does not say what it is"
	}
	//nolint:unconvert // the field has another type on other architectures
	magic := int64(st.Type) & 0xffffffff
	names := map[int64]string{
		unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs", unix.TMPFS_MAGIC: "tmpfs",
		unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.F2FS_SUPER_MAGIC: "f2fs", unix.NFS_SUPER_MAGIC: "nfs", unix.CEPH_SUPER_MAGIC: "ceph",
		unix.SMB2_SUPER_MAGIC: "smb", unix.FUSE_SUPER_MAGIC: "fuse", 0x0bd00bd0: "lustre", 0x47504653: "gpfs", 0x19830326: "beegfs", 0x2fc12fc1: "zfs",
	}
	if name, ok := names[magic]; ok {
		return name
	}
	return fmt.Sprintf("filesystem 0x%x", magic)
}
