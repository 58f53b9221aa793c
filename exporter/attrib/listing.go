package attrib

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// listing reads directories without an allocation for each name: a scan reads some with
// hundreds of names several times a second.
type listing struct {
	buf []byte
}

// dirent is what getdents64 writes before a name: inode, offset, length, type.
const (
	direntLength = 16
	direntKind   = 18
	direntName   = 19
	direntRoom   = 32 << 10
)

// each calls f for each name in a directory, with its inode and its type (unix.DT_…);
// the name is good until f returns. Whoever lists another directory in f loses this one.
func (l *listing) each(dir string, f func(name []byte, kind byte, inode uint64)) error {
	fd, err := openDir(dir)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // only read
	return l.names(fd, f)
}

func (l *listing) names(fd int, f func(name []byte, kind byte, inode uint64)) error {
	if l.buf == nil {
		l.buf = make([]byte, direntRoom)
	}
	for {
		n, err := unix.Getdents(fd, l.buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return err //nolint:wrapcheck // whoever asked adds what he asked for
		}
		if err := dirents(l.buf[:n], f); err != nil {
			return err
		}
	}
}

// dirents reads what getdents64 wrote.
func dirents(b []byte, f func(name []byte, kind byte, inode uint64)) error {
	for len(b) > 0 {
		if len(b) < direntName {
			return fmt.Errorf("%w: %d bytes of a directory entry", hostfs.ErrFormat, len(b))
		}
		length := int(binary.NativeEndian.Uint16(b[direntLength:]))
		if length < direntName || length > len(b) {
			return fmt.Errorf("%w: a directory entry of %d bytes in %d", hostfs.ErrFormat, length, len(b))
		}
		name := b[direntName:length]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		if dots := string(name); dots != "." && dots != ".." && len(name) > 0 {
			f(name, b[direntKind], binary.NativeEndian.Uint64(b))
		}
		b = b[length:]
	}
	return nil
}

func openDir(dir string) (int, error) {
	for {
		fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != unix.EINTR {
			return fd, err //nolint:wrapcheck // whoever asked adds what he asked for
		}
	}
}

// maybeDir reports whether an entry can be a directory; some file systems don't say.
func maybeDir(kind byte) bool { return kind == unix.DT_DIR || kind == unix.DT_UNKNOWN }

// number reads a process's number off its directory's name.
func number(name []byte) (int, bool) {
	if len(name) == 0 || len(name) > 9 || name[0] == '0' {
		return 0, false
	}
	n := 0
	for _, c := range name {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}
