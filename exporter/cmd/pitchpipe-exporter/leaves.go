package main

import (
	"errors"
	"fmt"
	"log/slog"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/leaf"
)

// makeLeaves returns the maker of leaves; made is false where none are needed, or can be
// made now.
func makeLeaves(root hostfs.Root, log *slog.Logger) (m *leaf.Maker, made bool, err error) {
	type answer struct {
		maker *leaf.Maker
		err   error
	}
	got, silent := collector.Ask("--perf.leaf", func() answer {
		m, err := leaf.New(root)
		return answer{m, err}
	})
	switch {
	case silent != nil:
		log.Warn("no job gets a leaf", "err", silent)
		return nil, false, nil
	case errors.Is(got.err, leaf.ErrNowhere):
		log.Info("no leaves are needed", "err", got.err)
		return nil, false, nil
	case got.err != nil:
		return nil, false, fmt.Errorf("--perf.leaf: %w", got.err)
	}
	return got.maker, true, nil
}
