package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// LoadSite reads the site's policy that the settings name, as the function
// LoadSite does. Where the file cannot be read the error says which setting named
// it, and where that stands.
func (c Config) LoadSite() (*SitePolicy, error) {
	policy, err := LoadSite(c.Site)
	if err == nil || errors.Is(err, ErrInvalid) || errors.Is(err, ErrUntrusted) {
		return policy, err
	}
	return nil, c.fault("site", c.Site, "cannot be read", "want a readable file with the site's policy, or the key left out", err)
}

// MakeState makes the directory of the durable state, for its owner alone, where
// it is missing.
func (c Config) MakeState() error {
	if err := os.MkdirAll(c.State, 0o700); err != nil {
		return c.fault("state", c.State, "cannot be made", fmt.Sprintf("want a directory that exists or that uid %d may make", os.Geteuid()), err)
	}
	return nil
}

// fault is an error about the path that a key names.
func (c Config) fault(key, path, found, want string, err error) error {
	where, given := c.Given[key]
	if !given {
		where = "default"
	}
	why := err.Error()
	if pathErr, ok := errors.AsType[*fs.PathError](err); ok {
		why = pathErr.Err.Error() // it names only the part of the path that failed
	}
	if missing := firstMissing(path); errors.Is(err, fs.ErrNotExist) && missing != "" && missing != path {
		why = "the folder " + missing + " does not exist"
	}
	return Error{Where: where, Key: key, Found: fmt.Sprintf("%q %s: %s", path, found, why), Want: want, cause: err}
}

// firstMissing is the uppermost part of the path that does not exist; empty where
// all do.
func firstMissing(path string) string {
	missing := ""
	for at := path; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(at); errors.Is(err, fs.ErrNotExist) {
			missing = at
		} else if err == nil || at == filepath.Dir(at) {
			return missing
		}
		if at == filepath.Dir(at) {
			return missing
		}
	}
}
