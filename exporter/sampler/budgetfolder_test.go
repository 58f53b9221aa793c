package sampler_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"pitchpipe/exporter/sampler"
)

func TestTheAdministratorsFileIsReadAndAForgedOneIsNot(t *testing.T) {
	t.Parallel()
	me := uint32(os.Geteuid())
	for _, tc := range []struct {
		name    string
		prepare func(t *testing.T, dir string) // dir/slurm is there
		id      string
		joules  float64
		err     error
	}{
		{"as a prolog writes it", func(t *testing.T, dir string) { writeBudget(t, dir, "slurm/42", 0o644) }, "42", 2000, nil},
		{"no file", func(*testing.T, string) {}, "42", 0, nil},
		{"others can write the file", func(t *testing.T, dir string) { writeBudget(t, dir, "slurm/42", 0o666) }, "42", 0, sampler.ErrBudgetFile},
		{"its group can write the file", func(t *testing.T, dir string) { writeBudget(t, dir, "slurm/42", 0o664) }, "42", 0, sampler.ErrBudgetFile},
		{"others can write the folder", func(t *testing.T, dir string) {
			writeBudget(t, dir, "slurm/42", 0o644)
			chmodBudget(t, filepath.Join(dir, "slurm"), 0o777)
		}, "42", 0, sampler.ErrBudgetFile},
		{"others can write the folder above", func(t *testing.T, dir string) {
			writeBudget(t, dir, "slurm/42", 0o644)
			chmodBudget(t, dir, 0o777)
		}, "42", 0, sampler.ErrBudgetFile},
		{"a link to another job's", func(t *testing.T, dir string) {
			writeBudget(t, dir, "slurm/43", 0o644)
			if err := os.Symlink("43", filepath.Join(dir, "slurm", "42")); err != nil {
				t.Fatal(err)
			}
		}, "42", 0, sampler.ErrBudgetFile},
		{"a folder", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "slurm", "42"), 0o755); err != nil { //nolint:gosec // as an administrator makes it
				t.Fatal(err)
			}
		}, "42", 0, sampler.ErrBudgetFile},
		{"a job that is called like a way out", func(t *testing.T, dir string) { writeBudget(t, dir, "slurm/42", 0o644) }, "../slurm/42", 0, sampler.ErrBudgetFile},
		{"a job that is called like the folder above", func(*testing.T, string) {}, "..", 0, sampler.ErrBudgetFile},
		{"no budget in it", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "slurm", "42"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "42", 0, sampler.ErrBudgetFile},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "slurm"), 0o755); err != nil { //nolint:gosec // as an administrator makes it
				t.Fatal(err)
			}
			chmodBudget(t, dir, 0o755)
			tc.prepare(t, dir)
			b, err := sampler.BudgetFolder{Path: dir, Trusted: []uint32{me}}.Budget("slurm", tc.id)
			if !errors.Is(err, tc.err) || b.Joules != tc.joules {
				t.Errorf("%+v, %v; want %g J, %v", b, err, tc.joules, tc.err)
			}
		})
	}
}

func TestAFileOfAnotherUserIsNotBelieved(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("to give a file away needs root")
	}
	dir := t.TempDir()
	writeBudget(t, dir, "slurm/42", 0o644)
	if err := os.Chown(filepath.Join(dir, "slurm", "42"), 61001, 61001); err != nil {
		t.Fatal(err)
	}
	if b, err := (sampler.BudgetFolder{Path: dir}).Budget("slurm", "42"); b.Joules > 0 || !errors.Is(err, sampler.ErrBudgetFile) {
		t.Errorf("%v, %v; want %v", b, err, sampler.ErrBudgetFile)
	}
	if b, err := (sampler.BudgetFolder{Path: dir, Trusted: []uint32{61001}}).Budget("slurm", "42"); err != nil || b.Joules != 2000 {
		t.Errorf("of a trusted one: %+v, %v", b, err)
	}
}

func writeBudget(t *testing.T, dir, name string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as an administrator makes it
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("joules=2000 seconds=60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chmodBudget(t, path, mode)
}

func chmodBudget(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
