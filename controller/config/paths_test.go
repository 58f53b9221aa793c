package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAPathThatCannotBeUsedIsToldWithItsSetting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "plain"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name, text string
		use        func(Config) error
		at, want   string // DIR stands for the directory
	}{
		{
			"a site file in a missing folder", "# ours\nsite: DIR/a/b/site.yaml\n", site,
			":2:7: site: \"DIR/a/b/site.yaml\" cannot be read: ", "the folder DIR/a does not exist; want a readable file",
		},
		{
			"a missing site file in a folder that is there", "site: DIR/site.yaml\n", site,
			":1:7: site: \"DIR/site.yaml\" cannot be read: ", "no such file or directory; want a readable file",
		},
		{
			"a folder that is a file", "site: DIR/plain/site.yaml\n", site,
			":1:7: site: ", "not a directory",
		},
		{
			"a state directory below a file", "local:\n  cores: 1\nstate: DIR/plain/state\n", Config.MakeState,
			":3:8: state: \"DIR/plain/state\" cannot be made: ", "not a directory; want a directory that exists or that uid",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := func(s string) string { return strings.ReplaceAll(s, "DIR", dir) }
			path := write(t, "controller.yaml", in(tc.text))
			c, err := Load(nil, []string{"HOME=/home/u"}, path)
			if err != nil {
				t.Fatal(err)
			}
			err = tc.use(c)
			if err == nil || !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), path+in(tc.at)) || !strings.Contains(err.Error(), in(tc.want)) {
				t.Errorf("got  %v\nwant %s%s … %s", err, path, in(tc.at), in(tc.want))
			}
		})
	}
	missing := Config{Site: filepath.Join(dir, "a", "site.yaml"), Given: map[string]string{"site": "--site"}}
	if err := site(missing); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "--site: site: ") {
		t.Errorf("by a flag: %v", err)
	}
}

func site(c Config) error { _, err := c.LoadSite(); return err }

func TestTheStateIsMadeForItsOwnerAlone(t *testing.T) {
	t.Parallel()
	c := Config{State: filepath.Join(t.TempDir(), "a", "state")}
	for range 2 { // a second time changes nothing
		if err := c.MakeState(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(c.State); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if policy, err := c.LoadSite(); err != nil || policy == nil {
		t.Errorf("a site that wrote no policy: %v", err)
	}
}

func TestJobsOfOthersPassThroughTheStateOfRootsLocalDriver(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		driver          string
		was, want, user os.FileMode // user: want of a controller that is not root's
	}{
		{"local", 0, 0o711, 0o700},
		{"local", 0o700, 0o711, 0o700},
		{"local", 0o750, 0o751, 0o750},
		{"slurm", 0o700, 0o700, 0o700},
	} {
		state := filepath.Join(t.TempDir(), "state")
		if c.was != 0 {
			if err := os.Mkdir(state, c.was); err != nil {
				t.Fatal(err)
			}
		}
		if os.Geteuid() != 0 {
			c.want = c.user
		}
		err := Config{State: state, Driver: c.driver}.MakeState()
		if info, errStat := os.Stat(state); err != nil || errStat != nil || info.Mode().Perm() != c.want {
			t.Errorf("%s, %v before: %v (%v), want %v", c.driver, c.was, info.Mode(), err, c.want)
		}
	}
}

func TestTheUppermostMissingFolderIsNamed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for path, want := range map[string]string{
		dir: dir, dir + "/a": dir + "/a", dir + "/a/b/c": dir + "/a", "/": "/", // where all is there, the path itself
	} {
		if got := firstMissing(path); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
