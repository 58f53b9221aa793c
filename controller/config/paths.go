package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
)

// LoadSite reads the site's policy that the settings name. The error of a file that cannot be
// read says which setting names it, and where.
func (c Config) LoadSite() (*SitePolicy, error) {
	policy, err := LoadSite(c.Site)
	if err == nil || errors.Is(err, ErrInvalid) || errors.Is(err, ErrUntrusted) {
		return policy, err
	}
	return nil, c.fault("site", c.Site, "cannot be read", "want a readable file with the site's policy, or the key left out", err)
}

// MakeState makes the directory of the durable state, only for its owner, where it is missing. Under
// root the jobs of other users pass through it to what the local driver keeps for them.
func (c Config) MakeState() error {
	mode := os.FileMode(0o700)
	if c.Driver == "local" && os.Geteuid() == 0 {
		mode = 0o711
	}
	if err := durable.Mkdir(c.State, mode); err != nil {
		return c.fault("state", c.State, "cannot be made", fmt.Sprintf("want a directory that exists or that uid %d may make", os.Geteuid()), err)
	}
	return nil
}

// fault is an error about the path that a key names.
func (c Config) fault(key, path, found, want string, err error) error {
	where := jobfile.Pos{Filename: cmp.Or(c.Given[key], "default")}
	why := err.Error()
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err.Error() // it names only the part of the path that failed
	}
	if missing := firstMissing(path); errors.Is(err, fs.ErrNotExist) && missing != path {
		why = "the folder " + missing + " does not exist"
	}
	return faultAt(where, key, fmt.Sprintf("%q %s: %s", path, found, why), want, err)
}

// firstMissing is the uppermost part of the path that does not exist; path where all do.
func firstMissing(path string) string {
	for parent := filepath.Dir(path); parent != path && existing(parent) == ""; parent = filepath.Dir(path) {
		path = parent
	}
	return path
}

// readChecked reads at most one byte more than limit of a regular file that check accepts. The
// opened file is checked, not its name, so that it cannot be swapped in between.
func readChecked(path string, limit int64, check func(fs.FileInfo) error) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrUntrusted, path)
	}
	if err := check(info); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, limit+1))
}

// distrust says why a file is not to be trusted: it belongs to none of the owners, or its mode
// has a bit of mask. Nil: it is. In a sticky directory only the owner replaces a file.
func distrust(name string, info fs.FileInfo, mask fs.FileMode, owners ...int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: the owner of %s is unknown", ErrUntrusted, name)
	}
	if !slices.Contains(owners, int(stat.Uid)) {
		return fmt.Errorf("%w: %s belongs to uid %d; want %d", ErrUntrusted, name, stat.Uid, owners[0])
	}
	if info.Mode().Perm()&mask != 0 && !(info.IsDir() && info.Mode()&fs.ModeSticky != 0) {
		return fmt.Errorf("%w: %s has mode %04o; want nothing of %04o in it", ErrUntrusted, name, info.Mode().Perm(), mask)
	}
	return nil
}

// maxToken bounds a token: a workload identity has about 1 KiB.
const maxToken = 16 << 10

// ReadToken reads a secret: one line of a file that only its owner, root or the user of this
// process, may read or write. The error is an Error, and names the file and never its content.
func ReadToken(path string) (string, error) {
	data, err := readChecked(path, maxToken, func(i fs.FileInfo) error { return distrust(path, i, 0o077, os.Geteuid(), 0) })
	token := bytes.TrimSpace(data)
	if err == nil && (len(token) == 0 || len(data) > maxToken || bytes.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f })) {
		err = errors.New("it holds no token")
	}
	if err != nil {
		return "", faultAt(jobfile.Pos{Filename: path}, "token", err.Error(), "want a file with the token alone, that only its owner may read", err)
	}
	return string(token), nil
}
