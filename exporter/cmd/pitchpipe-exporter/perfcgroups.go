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
	m, err = collector.Ask("--perf.leaf", func() (*perf.Cgroups, error) { return perf.NewCgroups(root) })
	switch {
	case errors.Is(err, collector.ErrSilent):
		log.Warn("no job gets a perf cgroup", "err", err)
		return nil, false, nil
	case errors.Is(err, perf.ErrNoCgroupsNeeded):
		log.Info("no perf cgroups are needed", "err", err)
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("--perf.leaf: %w", err)
	}
	return m, true, nil
}
