package slurm

import (
	"encoding/binary"
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"pitchpipe/driver/durable"
)

// publish replaces a file that the TaskProlog reads, which runs as the job's user, and
// which nobody else but this process can read.
func (d *Driver) publish(path string, data []byte, uid uint32) error {
	openly, err := publish(path, data, uid, reads)
	if openly {
		d.openly.Do(func() {
			d.cfg.Logger.Warn("every user can read the settings of jobs: their filesystem has no access lists", "folder", d.cfg.SettingsDir)
		})
	}
	return err
}

// publish writes a file for one user. A user's own controller owns it as he does; a
// site's, which may give no file away, names him in the file's access list. Where the
// filesystem has no such lists everybody can read it, which is openly.
func publish(path string, data []byte, uid uint32, grant func(f *os.File, uid uint32) error) (openly bool, err error) {
	if int(uid) == os.Geteuid() {
		return false, durable.Write(path, data, 0o600)
	}
	// What the mode says of the group is the most that the list may grant.
	err = durable.WriteWith(path, data, 0o640, func(f *os.File) error { return grant(f, uid) })
	if errors.Is(err, unix.ENOTSUP) {
		return true, durable.Write(path, data, 0o644)
	}
	return false, err
}

// accessList is the name under which Linux keeps a file's POSIX access list.
const accessList = "system.posix_acl_access"

// reads has the file be read by one more user, and no group. Whoever made it owns it.
func reads(f *os.File, uid uint32) error {
	return unix.Fsetxattr(int(f.Fd()), accessList, listOf(uid), 0)
}

// listOf is an access list as the kernel takes it: version 2, then entries of a tag, what
// is allowed, and whom it is about, in the order of the tags.
func listOf(uid uint32) []byte {
	const (
		owner, user, group, mask, others = 0x01, 0x02, 0x04, 0x10, 0x20
		read, write                      = 4, 2
		nobody                           = ^uint32(0)
	)
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, may uint16
		id       uint32
	}{{owner, read | write, nobody}, {user, read, uid}, {group, 0, nobody}, {mask, read, nobody}, {others, 0, nobody}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.may)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}
