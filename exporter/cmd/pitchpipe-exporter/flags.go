package main

import (
	"fmt"
	"log/slog"
	"os"
	"time"
)

// What a job did between two samples is shared out as if it had been even. Counters of
// energy that cannot wait for so long are read between them.
const maxInterval = 30 * time.Second

// check refuses what would be taken for a default, or be found wrong only when it is used.
func (o options) check() error {
	between := func(d, least time.Duration) bool { return d >= least && d <= maxInterval }
	for _, f := range []struct {
		name  string
		value any
		sound bool
		want  string
	}{
		{"socket", o.serving.Socket, o.serving.Socket != "", "a path"},
		{"web.jobs", o.jobs, o.jobs == "own" || o.jobs == "all", "own or all"},
		{"path.sysfs", o.root.SysFS, o.root.SysFS == "" || isFolder(o.root.SysFS), "a folder"},
		{"path.cgroupfs", o.root.CgroupFS, o.root.CgroupFS == "" || isFolder(o.root.CgroupFS), "a folder"},
		{"sampling.interval", o.sampling.Interval, between(o.sampling.Interval, 50*time.Millisecond), fmt.Sprint("50ms to ", maxInterval)},
		{"sampling.discover", o.sampling.Discover, between(o.sampling.Discover, 10*time.Millisecond), fmt.Sprint("10ms to ", maxInterval)},
		{"sampling.ring", o.kept.Samples, o.kept.Samples >= 1 && o.kept.Samples <= 1_000_000, "1 to 1000000"},
		{"sampling.keep", o.kept.Keep, o.kept.Keep > 0, "more than 0s"},
		{"state.file", o.state, !isFolder(o.state), "a file, which need not be there yet"},
		{"log.level", o.level, new(slog.Level).UnmarshalText([]byte(o.level)) == nil, "debug, info, warn or error"},
	} {
		if !f.sound {
			return fmt.Errorf("--%s=%v: want %s", f.name, f.value, f.want)
		}
	}
	return nil
}

func isFolder(path string) bool {
	is, err := os.Stat(path)
	return err == nil && is.IsDir()
}
