package main

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"time"

	"pitchpipe/exporter/collector"
)

const (
	// What a job did between two samples is shared out as if it had been even. Counters of
	// energy that cannot wait for so long are read between them.
	maxInterval = 30 * time.Second
	maxRing     = 1_000_000 // samples of each of some hundred attempts
)

// check refuses what would be taken for a default, or be found wrong only when it is used.
func (o options) check() error {
	between := func(d, least time.Duration) bool { return d >= least && d <= maxInterval }
	tree := func(path string) bool { is := kind(path); return is == "" || is == folder }
	for _, f := range []struct {
		name  string
		value any
		sound bool
		want  string
	}{
		{"socket", o.serving.Socket, o.serving.Socket != "", "a path"},
		{"web.config.file", o.serving.WebConfig, o.serving.WebConfig == "" || o.serving.Metrics != "", "--web.listen-address with it"},
		{"web.jobs", o.jobs, o.jobs == "own" || o.jobs == "all", "own or all"},
		{"path.rootfs", o.rootfs, tree(o.rootfs), "a folder"},
		{"path.procfs", o.root.ProcFS, tree(o.root.ProcFS), "a folder"},
		{"path.sysfs", o.root.SysFS, tree(o.root.SysFS), "a folder"},
		{"path.cgroupfs", o.root.CgroupFS, tree(o.root.CgroupFS), "a folder"},
		{"sampling.interval", o.sampling.Interval, between(o.sampling.Interval, 50*time.Millisecond), fmt.Sprint("50ms to ", maxInterval)},
		{"sampling.discover", o.sampling.Discover, between(o.sampling.Discover, 10*time.Millisecond), fmt.Sprint("10ms to ", maxInterval)},
		{"sampling.ring", o.kept.Samples, o.kept.Samples >= 1 && o.kept.Samples <= maxRing, fmt.Sprint("1 to ", maxRing)},
		{"sampling.keep", o.kept.Keep, o.kept.Keep > 0, "more than 0s"},
		{"budget.dir", o.budgets, kind(o.budgets) != file, "a folder, which need not be there yet"},
		{"state.file", o.state, kind(o.state) != folder, "a file, which need not be there yet"},
		{"gpu.dcgm-url", o.gpu.dcgm, o.gpu.dcgm == "" || isPage(o.gpu.dcgm), "a URL such as http://127.0.0.1:9400/metrics"},
		{"log.level", o.level, new(slog.Level).UnmarshalText([]byte(o.level)) == nil, "debug, info, warn or error"},
	} {
		if !f.sound {
			return fmt.Errorf("--%s=%v: want %s", f.name, f.value, f.want)
		}
	}
	return nil
}

const folder, file, nothing = "folder", "file", "nothing"

// kind is what is at a path; empty where it is none, or does not answer.
func kind(path string) string {
	is, err := collector.Ask(path, func() (fs.FileInfo, error) { return os.Stat(path) })
	switch {
	case path == "" || errors.Is(err, collector.ErrSilent):
		return ""
	case err != nil:
		return nothing
	case is.IsDir():
		return folder
	}
	return file
}

func isPage(text string) bool {
	page, err := url.Parse(text)
	return err == nil && (page.Scheme == "http" || page.Scheme == "https") && page.Hostname() != ""
}
