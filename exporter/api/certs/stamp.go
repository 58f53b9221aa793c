package certs

import (
	"fmt"
	"os"
	"syscall"
	"time"
)

// stamp is by what a file is seen to have changed.
type stamp struct {
	inode, size      uint64
	changed, written time.Duration // since the epoch
}

type stamps [3]stamp

// stamp looks at the files without reading them. A link is followed, since that is
// how some renew all three at once.
func (f Files) stamp() (out stamps, err error) {
	for i, path := range []string{f.Cert, f.Key, f.CA} {
		if path == "" {
			return out, fmt.Errorf("%w: a certificate, its key and the authority of the other side are needed", ErrFiles)
		}
		st, err := os.Stat(path)
		if err != nil {
			return out, fmt.Errorf("%w: %w", ErrFiles, err)
		}
		out[i] = stamp{written: time.Duration(st.ModTime().UnixNano())}
		if sys, ok := st.Sys().(*syscall.Stat_t); ok {
			out[i].inode, out[i].size = sys.Ino, uint64(sys.Size)
			out[i].changed = time.Duration(sys.Ctim.Nano())
		}
	}
	return out, nil
}
