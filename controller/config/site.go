package config

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"pitchpipe/controller/tuning"
)

// SitePolicy is what the administrator allows. It holds a default block and blocks
// for single partitions, accounts, QOS and users; each block says only what it
// changes.
//
// For one job the blocks are laid over one another from the widest to the
// narrowest:
//
//	built-in defaults, default, partition, account, qos, user
//
// and for each field the narrowest block that sets it wins, whether it allows more
// or less than the wider ones. So a site may forbid everything and allow it for one
// user, or the reverse. Ceilings are laid over one another knob by knob. What no
// matching block says is as tuning.DefaultSite has it; a block for another
// partition, account, QOS or user has no say.
//
// A SitePolicy does not change and is safe for concurrent use. Its zero value is
// the policy of a site that wrote none.
type SitePolicy struct {
	base  []change
	scope map[string]map[string][]change // by scope, then by name
}

// change is one key of a block, as what it does to the resolved policy.
type change func(*tuning.Site)

// The scopes, from the widest to the narrowest.
func scopes() []string { return []string{"partition", "account", "qos", "user"} }

// For resolves the policy for one job. An empty name matches no block. The result
// is the caller's own.
func (p *SitePolicy) For(partition, account, qos, user string) tuning.Site {
	site := tuning.DefaultSite()
	site.Sources = map[string]string{}
	for _, name := range siteKeyNames() {
		site.Sources[name] = tuning.FromDefault
	}
	apply := func(block []change) {
		for _, c := range block {
			c(&site)
		}
	}
	apply(p.base)
	for i, name := range []string{partition, account, qos, user} {
		if name != "" {
			apply(p.scope[scopes()[i]][name])
		}
	}
	return site
}

// LoadSite reads the site's policy. An empty path is the policy of a site that
// wrote none; a file that is named and missing is an error, so that a lost policy
// stops the controller rather than freeing it.
//
// When the process runs as root, a file or its directory that belongs to somebody
// else, or that its group or others may write, is ErrUntrusted. Faults come back
// as Errors, all of them at once.
func LoadSite(path string) (*SitePolicy, error) {
	return loadSite(path, os.Geteuid())
}

func loadSite(path string, euid int) (*SitePolicy, error) {
	if path == "" {
		return &SitePolicy{}, nil
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, fmt.Errorf("read the site's policy: %w", err)
	}
	f, err := os.Open(resolved)
	if err != nil {
		return nil, fmt.Errorf("read the site's policy: %w", err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	// The opened file is judged, not its name, so that it cannot be swapped between.
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the site's policy: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrUntrusted, path)
	}
	if euid == 0 {
		dir, err := os.Stat(filepath.Dir(resolved))
		if err != nil {
			return nil, fmt.Errorf("read the site's policy: %w", err)
		}
		for name, info := range map[string]fs.FileInfo{resolved: info, filepath.Dir(resolved): dir} {
			if err := distrust(name, info); err != nil {
				return nil, err
			}
		}
	}
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("read the site's policy: %w", err)
	}
	return parseSite(path, data)
}

// distrust tells why root should not obey the file or directory, or nil.
func distrust(name string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%w: the owner of %s is not known", ErrUntrusted, name)
	}
	if stat.Uid != 0 {
		return fmt.Errorf("%w: %s belongs to uid %d; want root, since the controller runs as root", ErrUntrusted, name, stat.Uid)
	}
	open := info.Mode().Perm() & 0o022
	if info.IsDir() && info.Mode()&fs.ModeSticky != 0 {
		open = 0 // nobody can replace root's file in it
	}
	if open != 0 {
		return fmt.Errorf("%w: %s has mode %04o; want no write permission for group and others", ErrUntrusted, name, info.Mode().Perm())
	}
	return nil
}
