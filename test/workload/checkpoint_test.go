package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func saved(t *testing.T) (path string, h header) {
	t.Helper()
	path, h = filepath.Join(t.TempDir(), "job.ckpt"), header{Kind: "dense", Input: 2, Seed: 7, Scale: 1, Epochs: 40, Done: 3}
	if err := save(path, h, &counter{sum: 77}); err != nil {
		t.Fatal(err)
	}
	return path, h
}

func TestWhatIsSavedIsLoadedHoweverFarItIs(t *testing.T) {
	t.Parallel()
	path, h := saved(t)
	h.Done = 30
	var c counter
	if done, err := load(path, h, &c); err != nil || done != 3 || c.sum != 77 {
		t.Errorf("%d epochs are done, the sum is %d, %v", done, c.sum, err)
	}
}

func TestAnyCutOrChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	path, h := saved(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, at int, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := load(path, h, &counter{}); !errors.Is(err, errCorrupt) {
			t.Errorf("%s at byte %d: error %v, want errCorrupt", what, at, err)
		}
	}
	for i := range whole {
		check("cut", i, whole[:i])
		changed := append([]byte(nil), whole...)
		changed[i] ^= 1
		check("changed", i, changed)
	}
}

func TestAMissingFileIsNotACorruptOne(t *testing.T) {
	t.Parallel()
	_, err := load(filepath.Join(t.TempDir(), "none"), header{}, &counter{})
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, errCorrupt) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestACheckpointOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	path, h := saved(t)
	h.Kind = "bfs"
	if _, err := load(path, h, &counter{}); !errors.Is(err, errUsage) {
		t.Errorf("error %v, want errUsage", err)
	}
}

func FuzzParseCheckpoint(f *testing.F) {
	f.Add([]byte(magic + "{}\nbody0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := parseCheckpoint(data); err != nil && !errors.Is(err, errCorrupt) {
			t.Errorf("error %v, want errCorrupt", err)
		}
	})
}
