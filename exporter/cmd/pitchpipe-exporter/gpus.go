package main

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/hostfs"
)

// gpuOptions are where readings of GPUs may come from.
type gpuOptions struct {
	helper string // program, empty = pitchpipe-gpu next to this program or on PATH
	smi    string // program, empty = nvidia-smi on PATH
}

// patience is how long a backend has for its first reading: a driver that is not
// resident takes seconds to load.
const patience = 15 * time.Second

// gpus are the graphics cards of a node; the source is nil where there are none.
type gpus struct {
	source *gpu.Source
	driver string // that has to be there before any backend is asked; empty = nothing
}

// findGPUs returns the source of readings where this node has NVIDIA's driver, or a card that
// waits for it; and what there is to be said about it.
func findGPUs(ctx context.Context, o gpuOptions, root hostfs.Root, interval time.Duration, log *slog.Logger) (gpus, []api.Source) {
	driver := root.Proc("driver", "nvidia")
	type there struct{ driver, card bool }
	is, silent := collector.Ask("gpu/nvidia", func() (there, error) {
		_, err := os.Stat(driver)
		return there{err == nil, nvidiaCard(root)}, nil
	})
	if silent != nil {
		return gpus{}, []api.Source{collector.Source("gpu/nvidia", "", silent)}
	}
	waits := !is.driver && o == (gpuOptions{})
	if waits && !is.card {
		return gpus{}, []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "no NVIDIA driver: " + driver + " is not there"}}
	}
	g := gpus{source: gpu.NewSource(log, backends(o, interval)...)}
	if waits {
		g.driver = driver
	} else {
		_ = g.source.Try(ctx, patience) // why not is in what the probe says
	}
	return g, g.sources(ctx)
}

// backends are asked in this order. A program that is not there may come yet, with the driver.
func backends(o gpuOptions, interval time.Duration) []gpu.Backend {
	return []gpu.Backend{
		gpu.Helper{Path: program(o.helper, "pitchpipe-gpu"), Interval: interval},
		gpu.SMI{Path: program(o.smi, "nvidia-smi"), Interval: interval},
	}
}

// driverAgain is how often a driver is looked for that is not loaded.
const driverAgain = 10 * time.Second

// run reads until ctx ends, from when the driver is there.
func (g gpus) run(ctx context.Context, log *slog.Logger) error {
	for waited := false; ; waited = true {
		if !g.waits() {
			if waited {
				log.Info("the driver of the graphics cards was loaded", "driver", g.driver)
			}
			return g.source.Run(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(driverAgain):
		}
	}
}

// waits reports whether the driver is not there yet.
func (g gpus) waits() bool {
	_, err := os.Stat(g.driver)
	return g.driver != "" && err != nil
}

// sources is the state of the cards at this moment.
func (g gpus) sources(ctx context.Context) []api.Source {
	if g.waits() {
		return []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "there is an NVIDIA card, and no driver yet: " + g.driver + " is not there"}}
	}
	out := g.source.Probe(ctx)
	if s := g.source.Snapshot(); s.Backend != "" && time.Since(s.At) > gpu.Stale {
		for i := range out {
			if out[i].Support == api.Supported {
				out[i].Silent, out[i].Reason = true, collector.ErrSilent.Error()
			}
		}
	}
	return out
}

// nvidiaCard reports whether the machine has a display device of NVIDIA's, whatever drives it.
func nvidiaCard(root hostfs.Root) bool {
	const vendor, display = "0x10de", "0x03"
	devices, _ := filepath.Glob(root.Sys("bus", "pci", "devices", "*")) // the pattern is good
	return slices.ContainsFunc(devices, func(device string) bool {
		is := func(file string) string { return hostfs.Text(filepath.Join(device, file)) }
		return is("vendor") == vendor && strings.HasPrefix(is("class"), display)
	})
}

// program is the one that was named, else one next to this program, else one on PATH.
func program(named, name string) string {
	self, err := os.Executable()
	if beside := filepath.Join(filepath.Dir(self), name); err == nil && named == "" {
		if _, err := exec.LookPath(beside); err == nil {
			return beside
		}
	}
	return cmp.Or(named, name)
}
