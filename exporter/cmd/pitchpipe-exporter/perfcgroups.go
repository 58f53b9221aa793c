package main

import (
	"errors"
	"fmt"
	"log/slog"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/hostfs"
)

// makePerfCgroups returns the maker of perf cgroups; made is false where none are needed, or
// can be made now.
func makePerfCgroups(root hostfs.Root, log *slog.Logger) (m *perf.Cgroups, made bool, err error) {
	type answer struct {
		maker *perf.Cgroups
		err   error
	}
	got, silent := collector.Ask("--perf.leaf", func() answer {
		m, err := perf.NewCgroups(root)
		return answer{m, err}
	})
	switch {
	case silent != nil:
		log.Warn("no job gets a perf cgroup", "err", silent)
		return nil, false, nil
	case errors.Is(got.err, perf.ErrNoCgroupsNeeded):
		log.Info("no perf cgroups are needed", "err", got.err)
		return nil, false, nil
	case got.err != nil:
		return nil, false, fmt.Errorf("--perf.leaf: %w", got.err)
	}
	return got.maker, true, nil
}
