package budget_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/budget"
)

func TestTheLowestCounts(t *testing.T) {
	t.Parallel()
	file := api.Budget{Joules: 100, Seconds: 60}
	for _, tc := range []struct {
		name string
		set  budget.Set
		want *api.Budget
	}{
		{"nobody said anything", nil, nil},
		{"one did", budget.Set(nil).With(api.ByOwner, file), &api.Budget{Joules: 100, Seconds: 60, By: api.ByOwner}},
		{
			"the controller asks for less", budget.Set(nil).With(api.ByAdministrator, file).With(api.ByController, api.Budget{Joules: 40, Used: 9, Seconds: 90}),
			&api.Budget{Joules: 40, Used: 9, Seconds: 60, By: api.ByController},
		},
		{
			"the user asks for more", budget.Set(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 400, Seconds: 5}),
			&api.Budget{Joules: 40, Seconds: 5, By: api.ByController},
		},
		{
			"the user wants modelled joules to count", budget.Set(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 4, Modelled: true}),
			&api.Budget{Joules: 4, By: api.ByOwner},
		},
		{
			"the controller takes its word back", budget.Set(nil).With(api.ByController, api.Budget{Joules: 40}).With(api.ByOwner, api.Budget{Joules: 50}).With(api.ByController, api.Budget{}),
			&api.Budget{Joules: 50, By: api.ByOwner},
		},
	} {
		if diff := cmp.Diff(tc.want, tc.set.Counts()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Whatever the others say, nobody has more than each of them grants.
func TestNobodyRaisesWhatAnotherSaid(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var set budget.Set
		said := map[api.Origin]api.Budget{}
		for range rapid.IntRange(1, 12).Draw(t, "words") {
			by := rapid.SampledFrom(api.Origins()).Draw(t, "by")
			b := api.Budget{Joules: float64(rapid.IntRange(0, 5).Draw(t, "joules")), Seconds: float64(rapid.IntRange(0, 5).Draw(t, "seconds"))}
			set = set.With(by, b)
			said[by] = b
			if b.Joules == 0 {
				delete(said, by)
			}
		}
		got := set.Counts()
		if (got != nil) != (len(said) > 0) {
			t.Fatalf("%+v of %+v", got, said)
		}
		for by, b := range said {
			if got.Joules > b.Joules || b.Seconds > 0 && got.Seconds > b.Seconds {
				t.Errorf("%+v, though %s said %+v", got, by, b)
			}
		}
		if got != nil && said[got.By].Joules != got.Joules {
			t.Errorf("%+v is said to be of %s, who said %+v", got, got.By, said[got.By])
		}
	})
}

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
		{"as a prolog writes it", func(t *testing.T, dir string) { write(t, dir, "slurm/42", 0o644) }, "42", 2000, nil},
		{"no file", func(*testing.T, string) {}, "42", 0, nil},
		{"others can write the file", func(t *testing.T, dir string) { write(t, dir, "slurm/42", 0o666) }, "42", 0, budget.ErrFile},
		{"its group can write the file", func(t *testing.T, dir string) { write(t, dir, "slurm/42", 0o664) }, "42", 0, budget.ErrFile},
		{"others can write the folder", func(t *testing.T, dir string) {
			write(t, dir, "slurm/42", 0o644)
			chmod(t, filepath.Join(dir, "slurm"), 0o777)
		}, "42", 0, budget.ErrFile},
		{"others can write the folder above", func(t *testing.T, dir string) {
			write(t, dir, "slurm/42", 0o644)
			chmod(t, dir, 0o777)
		}, "42", 0, budget.ErrFile},
		{"a link to another job's", func(t *testing.T, dir string) {
			write(t, dir, "slurm/43", 0o644)
			if err := os.Symlink("43", filepath.Join(dir, "slurm", "42")); err != nil {
				t.Fatal(err)
			}
		}, "42", 0, budget.ErrFile},
		{"a folder", func(t *testing.T, dir string) {
			if err := os.Mkdir(filepath.Join(dir, "slurm", "42"), 0o755); err != nil { //nolint:gosec // as an administrator makes it
				t.Fatal(err)
			}
		}, "42", 0, budget.ErrFile},
		{"a job that is called like a way out", func(t *testing.T, dir string) { write(t, dir, "slurm/42", 0o644) }, "../slurm/42", 0, budget.ErrFile},
		{"a job that is called like the folder above", func(*testing.T, string) {}, "..", 0, budget.ErrFile},
		{"no budget in it", func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "slurm", "42"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "42", 0, budget.ErrFile},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "slurm"), 0o755); err != nil { //nolint:gosec // as an administrator makes it
				t.Fatal(err)
			}
			chmod(t, dir, 0o755)
			tc.prepare(t, dir)
			b, ok, err := budget.Folder{Path: dir, Trusted: []uint32{me}}.Budget("slurm", tc.id)
			if !errors.Is(err, tc.err) || ok != (tc.joules > 0) || b.Joules != tc.joules {
				t.Errorf("%+v, %v, %v; want %g J, %v", b, ok, err, tc.joules, tc.err)
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
	write(t, dir, "slurm/42", 0o644)
	if err := os.Chown(filepath.Join(dir, "slurm", "42"), 61001, 61001); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := (budget.Folder{Path: dir}).Budget("slurm", "42"); ok || !errors.Is(err, budget.ErrFile) {
		t.Errorf("%v, %v; want %v", ok, err, budget.ErrFile)
	}
	if b, ok, err := (budget.Folder{Path: dir, Trusted: []uint32{61001}}).Budget("slurm", "42"); !ok || err != nil || b.Joules != 2000 {
		t.Errorf("of a trusted one: %+v, %v, %v", b, ok, err)
	}
}

func write(t *testing.T, dir, name string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as an administrator makes it
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("joules=2000 seconds=60\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, mode)
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}
