package slurm

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestAHookThatWritesItsFileWakesTheWatch(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	file := filepath.Join(t.TempDir(), "wake")
	told := wakes(ctx, file, slog.New(slog.DiscardHandler))
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(file + ".other")
	for n := range 2 { // it is made, then truncated
		write(file)
		select {
		case <-told:
		case <-time.After(time.Minute):
			t.Fatalf("write %d of the file woke no one", n+1)
		}
		for drained := false; !drained; { // several events may come of one write
			select {
			case <-told:
			case <-time.After(50 * time.Millisecond):
				drained = true
			}
		}
	}
}

func TestWithoutAFileNothingWakesTheWatch(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	if wakes(t.Context(), "", log) != nil {
		t.Error("no file is watched")
	}
	if wakes(t.Context(), filepath.Join(t.TempDir(), "no", "such", "file"), log) != nil {
		t.Error("a folder that is not there is watched")
	}
}
