package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"pitchpipe/driver/durable"
)

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestWriteJSONReplacesTheWholeFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range [][]string{{"a", "long", "value"}, {"b"}} {
		if err := durable.WriteJSON(path, want, 0o640); err != nil {
			t.Fatal(err)
		}
		var got []string
		if err := durable.ReadJSON(path, &got); err != nil || len(got) != len(want) || got[0] != want[0] {
			t.Errorf("read %v (%v), want %v", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v (%v), want 0640", info.Mode(), err)
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("files %v, want one", got)
	}
}

func TestWriteLeavesTheOldFileWhereItFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	if err := durable.WriteJSON(path, 1, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.WriteJSON(path, func() {}, 0o600); err == nil {
		t.Error("a function was written as JSON")
	}
	// A directory cannot be replaced by a file.
	blocked := filepath.Join(dir, "blocked")
	if err := os.MkdirAll(filepath.Join(blocked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.Write(blocked, []byte("x"), 0o600); err == nil {
		t.Error("a directory was replaced")
	}
	var got int
	if err := durable.ReadJSON(path, &got); err != nil || got != 1 {
		t.Errorf("read %d (%v), want 1", got, err)
	}
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("files %v, want no temporary one", got)
	}
}

func TestADirectoryIsOpenedToTheModeAndKeepsWhatItHas(t *testing.T) {
	t.Parallel()
	for was, want := range map[os.FileMode]os.FileMode{0o700: 0o711, 0o600: 0o711, 0o755: 0o755, 0o750 | os.ModeSetgid: 0o751 | os.ModeSetgid} {
		dir := filepath.Join(t.TempDir(), "dir")
		err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, was), durable.MkdirAll(dir, 0o711))
		if info, errStat := os.Stat(dir); err != nil || errStat != nil || info.Mode() != want|os.ModeDir {
			t.Errorf("%v became %v (%v), want %v", was, info.Mode(), err, want)
		}
	}
}

func TestWriteWithGivesTheFileAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	give := func(f *os.File) error { return f.Chown(12345, 12346) }
	if os.Geteuid() != 0 {
		if err := durable.WriteWith(path, nil, 0o400, give); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("giving a file away: %v, want %v", err, fs.ErrPermission)
		}
		if got := names(t, filepath.Dir(path)); len(got) != 0 {
			t.Errorf("files %v, want none", got)
		}
		return
	}
	if err := durable.WriteWith(path, []byte("x"), 0o400, give); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || stat.Uid != 12345 || stat.Gid != 12346 || info.Mode().Perm() != 0o400 {
		t.Errorf("%+v with mode %v, want user 12345, group 12346 and 0400", stat, info.Mode())
	}
}

func TestOfManyClaimantsOneWins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "claim")
	var won atomic.Int32
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			err := durable.Claim(path, i)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, fs.ErrExist) {
				t.Errorf("claim: %v, want %v", err, fs.ErrExist)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d won, want 1", won.Load())
	}
	if got := names(t, dir); len(got) != 1 {
		t.Errorf("files %v, want one", got)
	}
}

func TestReadJSONTellsMissingFromBroken(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	var v int
	if err := durable.ReadJSON(path, &v); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v, want %v", err, fs.ErrNotExist)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := durable.ReadJSON(path, &v); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("broken: %v, want another error", err)
	}
}
