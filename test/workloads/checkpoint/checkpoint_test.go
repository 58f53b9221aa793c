package checkpoint_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/test/workloads/checkpoint"
)

func header() checkpoint.Header {
	return checkpoint.Header{Kind: "dense", Input: 2, Seed: 7, Scale: 1, Epochs: 40, Done: 3}
}

func bytesOf(s string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, s)
		return err
	}
}

func TestWhatIsSavedIsLoaded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.ckpt")
	for _, body := range []string{"first", "", "third\nwith a line break\x00"} {
		if err := checkpoint.Save(path, header(), bytesOf(body)); err != nil {
			t.Fatal(err)
		}
		h, r, err := checkpoint.Load(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(header(), h); diff != "" || string(got) != body {
			t.Errorf("body %q, want %q; header (-want +got):\n%s", got, body, diff)
		}
	}
}

func TestAFailedSaveLeavesTheOldStateAndNoOtherFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "job.ckpt")
	if err := checkpoint.Save(path, header(), bytesOf("old")); err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	err := checkpoint.Save(path, header(), func(w io.Writer) error {
		if _, err := io.WriteString(w, "half of the new"); err != nil {
			return err
		}
		return full
	})
	if !errors.Is(err, full) {
		t.Fatalf("error %v, want %v in it", err, full)
	}
	_, r, err := checkpoint.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "old" {
		t.Errorf("after a failed save the file holds %q, %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v, %v; want the checkpoint alone", entries, err)
	}
}

func TestAnyCutOrChangedFileIsRefused(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "job.ckpt")
	if err := checkpoint.Save(path, header(), bytesOf("some state")); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	check := func(what string, at int, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := checkpoint.Load(path); !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s at byte %d: error %v, want ErrCorrupt", what, at, err)
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
	_, _, err := checkpoint.Load(filepath.Join(t.TempDir(), "none"))
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, checkpoint.ErrCorrupt) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
}

func TestSameWorkIgnoresOnlyHowFarItGot(t *testing.T) {
	t.Parallel()
	further := header()
	further.Done = 30
	if !header().Same(further) {
		t.Error("the same work further on is taken for another")
	}
	for name, change := range map[string]func(*checkpoint.Header){
		"kind":   func(h *checkpoint.Header) { h.Kind = "bfs" },
		"input":  func(h *checkpoint.Header) { h.Input++ },
		"seed":   func(h *checkpoint.Header) { h.Seed++ },
		"scale":  func(h *checkpoint.Header) { h.Scale = 2 },
		"epochs": func(h *checkpoint.Header) { h.Epochs++ },
	} {
		other := header()
		change(&other)
		if header().Same(other) {
			t.Errorf("work of another %s is taken for the same", name)
		}
	}
}

func FuzzLoadNeverPanics(f *testing.F) {
	f.Add([]byte("pitchpipe workload checkpoint 1\n{}\nbody0000"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "job.ckpt")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := checkpoint.Load(path); err != nil && !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("error %v, want ErrCorrupt", err)
		}
	})
}
