package trials_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/controller/trials"
	"pitchpipe/test/sandbox"
)

func touch(t *testing.T, path ...string) {
	t.Helper()
	sandbox.Plant(t, "", map[string]string{filepath.Join(path...): "x"})
}

func link(t *testing.T, to string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, file); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveDeletesTheFolderOfOneTrialAndNothingElse(t *testing.T) {
	t.Parallel()
	const folder = "job.search/s1/trial-007"
	for _, tt := range []struct {
		name  string
		make  func(t *testing.T, dir string) // besides kept, which always stays
		uid   int
		there string // what has to be there afterwards; empty: the folder is gone
		err   error
	}{
		{"a checkpoint", func(t *testing.T, dir string) { touch(t, dir, folder, "state") }, os.Getuid(), "", nil},
		{"folders in it", func(t *testing.T, dir string) { touch(t, dir, folder, "a/b/c") }, os.Getuid(), "", nil},
		{"a link in it", func(t *testing.T, dir string) {
			touch(t, dir, folder, "state")
			link(t, filepath.Join(dir, "kept"), dir, folder, "out")
			link(t, "../../../kept", dir, folder, "a/up")
		}, os.Getuid(), "", nil},
		{"no folder", func(*testing.T, string) {}, os.Getuid(), "", nil},
		{"no folder, but one of another trial", func(t *testing.T, dir string) {
			touch(t, dir, "job.search/s1/trial-008/state")
		}, os.Getuid(), "job.search/s1/trial-008/state", nil},
		{"a link instead of it", func(t *testing.T, dir string) { link(t, "../../kept", dir, folder) }, os.Getuid(), folder, trials.ErrNotOurs},
		{"a link to another trial", func(t *testing.T, dir string) {
			touch(t, dir, "job.search/s1/trial-008/state")
			link(t, "trial-008", dir, folder)
		}, os.Getuid(), "job.search/s1/trial-008/state", trials.ErrNotOurs},
		{"a link instead of the search's folder", func(t *testing.T, dir string) {
			touch(t, dir, "other/trial-007/state")
			link(t, "../other", dir, "job.search/s1")
		}, os.Getuid(), "other/trial-007/state", trials.ErrNotOurs},
		{"a link instead of the folder of all searches", func(t *testing.T, dir string) {
			touch(t, dir, "other/s1/trial-007/state")
			link(t, filepath.Join(dir, "other"), dir, "job.search")
		}, os.Getuid(), "other/s1/trial-007/state", trials.ErrNotOurs},
		{"a file instead of it", func(t *testing.T, dir string) { touch(t, dir, folder) }, os.Getuid(), folder, trials.ErrNotOurs},
		{"a folder of somebody else", func(t *testing.T, dir string) { touch(t, dir, folder, "state") }, os.Getuid() + 1, folder + "/state", trials.ErrNotOurs},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			touch(t, dir, "kept", "trial-007", "state")
			tt.make(t, dir)
			if err := trials.Remove(dir, "job", "s1", 7, uint32(tt.uid)); !errors.Is(err, tt.err) {
				t.Errorf("error %v, want %v", err, tt.err)
			}
			for _, want := range []string{"kept/trial-007/state", tt.there} {
				if _, err := os.Lstat(filepath.Join(dir, want)); err != nil {
					t.Errorf("it is gone: %v", err)
				}
			}
			if _, err := os.Lstat(filepath.Join(dir, folder)); tt.err == nil && !os.IsNotExist(err) {
				t.Errorf("the folder is still there: %v", err)
			}
		})
	}
	if err := trials.Remove(filepath.Join(t.TempDir(), "gone"), "job", "s1", 7, 0); err != nil {
		t.Errorf("the directory of the job is gone: %v", err)
	}
}

func TestAFolderIsBelowTheDirectoryOfItsJobWhateverItsName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"job": "/d/job.search/s/trial-012", "../../etc": "/d/.._.._etc.search/s/trial-012", "": "/d/.search/s/trial-012", "..": "/d/...search/s/trial-012"} {
		if got := trials.Folder("/d", name, "s", 12); got != want {
			t.Errorf("the job %q keeps its checkpoint in %s, want %s", name, got, want)
		}
	}
	dir := t.TempDir()
	touch(t, dir, "trial-001", "state")
	if err := os.Mkdir(filepath.Join(dir, "job.search"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := trials.Remove(dir, "job", "..", 1, uint32(os.Getuid())); err == nil {
		t.Error("the folder of a search is above that of all searches")
	}
	if _, err := os.Stat(filepath.Join(dir, "trial-001", "state")); err != nil {
		t.Error(err)
	}
}
