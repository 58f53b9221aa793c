package attrib

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// listing reads directories with the inodes of their entries, and without an allocation for
// each name: a scan reads some with hundreds of names several times a second.
type listing struct {
	buf []byte
}

// What getdents64 writes before a name: inode, offset, length, type.
const (
	direntLength = 16
	direntKind   = 18
	direntName   = 19
)

// each calls f for each name in a directory, with its inode and its type (unix.DT_…). The
// name is valid until f returns; f must not use the same listing.
func (l *listing) each(dir string, f func(name []byte, kind byte, inode uint64)) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // only read
	if l.buf == nil {
		l.buf = make([]byte, 32<<10)
	}
	for {
		n, err := unix.Getdents(fd, l.buf)
		if err != nil || n <= 0 {
			return err
		}
		for b := l.buf[:n]; len(b) > direntName; {
			length := int(binary.NativeEndian.Uint16(b[direntLength:]))
			name, _, _ := bytes.Cut(b[direntName:length], []byte{0})
			if dots := string(name); dots != "." && dots != ".." {
				f(name, b[direntKind], binary.NativeEndian.Uint64(b))
			}
			b = b[length:]
		}
	}
}

// maybeDir reports whether an entry can be a directory; some file systems don't say.
func maybeDir(kind byte) bool { return kind == unix.DT_DIR || kind == unix.DT_UNKNOWN }

// number reads a process's number off its directory's name.
func number(name []byte) (int, bool) {
	if len(name) == 0 || len(name) > 9 || name[0] < '1' || name[0] > '9' {
		return 0, false // nearly all that are none: they cost no error
	}
	n, err := strconv.Atoi(string(name))
	return n, err == nil
}
