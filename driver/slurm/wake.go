package slurm

import (
	"context"
	"log/slog"
	"path/filepath"

	"github.com/fsnotify/fsnotify"
)

// wakes tells of each time that a file is written, made or touched: the site's hooks
// (PrologSlurmctld, EpilogSlurmctld) do so when a job begins or ends. It only makes
// the next look sooner, so that a hook that is missing or lies costs time and nothing
// else. Without a file, or where nobody can watch it, nothing is ever told.
func wakes(ctx context.Context, file string, log *slog.Logger) <-chan struct{} {
	if file == "" {
		return nil
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		// The folder, since the file may not be there yet.
		if err = w.Add(filepath.Dir(file)); err != nil {
			_ = w.Close() // it has watched nothing
		}
	}
	if err != nil {
		log.Warn("no hook wakes the watch", "file", file, "error", err)
		return nil
	}
	out := make(chan struct{}, 1)
	go func() {
		defer func() { _ = w.Close() }()
		for {
			select {
			case e, ok := <-w.Events:
				if !ok {
					return
				}
				if filepath.Base(e.Name) != filepath.Base(file) {
					continue
				}
			case _, ok := <-w.Errors: // an overflow: something happened
				if !ok {
					return
				}
			case <-ctx.Done():
				return
			}
			select {
			case out <- struct{}{}:
			default: // one look answers both
			}
		}
	}()
	return out
}
