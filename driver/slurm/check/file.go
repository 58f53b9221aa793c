package check

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
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
	target, err := filepath.EvalSymlinks(path)
	f.Mode, f.Open, f.FS = info.Mode(), err == nil && open(target), filesystem(target)
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
	for dir := path; dir != filepath.Dir(dir); {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if err != nil || info.Mode().Perm()&0o001 == 0 {
			return false
		}
	}
	return true
}

func account(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(number); err == nil {
		return u.Username
	}
	return number
}

// filesystem names the kind of a filesystem: that of the last mount on the folder nearest above.
func filesystem(path string) string {
	mounts, _ := procfs.GetMounts() // without them it is unknown
	kind, nearest := "a filesystem that does not say what it is", 0
	for _, m := range mounts {
		point := strings.TrimSuffix(m.MountPoint, "/") + "/"
		if strings.HasPrefix(path+"/", point) && len(point) >= nearest {
			kind, nearest = m.FSType, len(point)
		}
	}
	return kind
}
