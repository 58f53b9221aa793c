package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pitchpipe/driver/durable"
)

func TestARecordComesBackAsItWasSaved(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "journal")
	j, err := durable.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if _, err := j.Load(ctx, "job-a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of what is not there: %v, want %v", err, fs.ErrNotExist)
	}
	for _, text := range []string{"one", "two"} {
		if err := j.Save(ctx, "job-a", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Save(ctx, "job-b", nil); err != nil {
		t.Fatal(err)
	}
	j, err = durable.OpenFolder(dir) // as after a crash
	if err != nil {
		t.Fatal(err)
	}
	if got, err := j.Load(ctx, "job-a"); err != nil || string(got) != "two" {
		t.Errorf("Load: %q (%v), want two", got, err)
	}
	if names, err := j.List(ctx); err != nil || !slices.Equal(names, []string{"job-a", "job-b"}) {
		t.Errorf("List: %v (%v), want job-a and job-b", names, err)
	}
	for range 2 {
		if err := j.Delete(ctx, "job-a"); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if names, err := j.List(ctx); err != nil || !slices.Equal(names, []string{"job-b"}) {
		t.Errorf("List: %v (%v), want job-b", names, err)
	}
}

func TestWhatIsNoNameOfARecordLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := durable.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "../x", "a/b", "a.b", "ä"} {
		if err := j.Save(t.Context(), name, nil); !errors.Is(err, durable.ErrName) {
			t.Errorf("Save(%q): %v, want %v", name, err, durable.ErrName)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("%d files (%v), want none", len(entries), err)
	}
}
