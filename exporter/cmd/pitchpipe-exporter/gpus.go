package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/window"
)

// gpuOptions are where readings of GPUs may come from.
type gpuOptions struct {
	helper string // program, empty = pitchpipe-gpu beside this program or on PATH
	smi    string // program, empty = nvidia-smi on PATH
	dcgm   string // URL, empty = none
}

// patience is how long a backend has for its first reading: a driver that is not
// resident takes seconds to load.
const patience = 15 * time.Second

// gpus are the graphics cards of a node; the source is nil where there are none.
type gpus struct {
	source *gpu.Source
	driver string // that has to be there before any backend is asked; empty = nothing
	loaded *atomic.Bool
}

// findGPUs returns the source of readings where this node has NVIDIA's driver, a card that
// waits for it, or a dcgm-exporter; and what there is to be said about it.
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
	backends := backends(o, interval, waits)
	if len(backends) == 0 {
		return gpus{}, []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "there is a driver, and neither pitchpipe-gpu beside this program nor nvidia-smi on PATH to ask it"}}
	}
	g := gpus{source: gpu.NewSource(gpu.Config{Backends: backends, Logger: log}), loaded: new(atomic.Bool)}
	if waits {
		g.driver = driver
	} else {
		g.loaded.Store(true)
		_ = g.source.Try(ctx, patience) // why not is in what the probe says
	}
	return g, g.sources(ctx)
}

// backends are those that can be asked; with all, also programs that are not there yet,
// since they may come with the driver.
func backends(o gpuOptions, interval time.Duration, all bool) []gpu.Backend {
	var out []gpu.Backend
	path, err := program(o.helper, helperName)
	if self, unknown := os.Executable(); err != nil && all && unknown == nil {
		path, err = filepath.Join(filepath.Dir(self), helperName), nil
	}
	if err == nil {
		out = append(out, gpu.Helper{Path: path, Interval: interval})
	}
	path, err = program(o.smi, smiName)
	if err != nil && all {
		path, err = smiName, nil // looked for on PATH whenever it is started
	}
	if err == nil {
		out = append(out, gpu.SMI{Path: path, Interval: interval})
	}
	if o.dcgm != "" {
		out = append(out, gpu.DCGM{URL: o.dcgm, Interval: interval})
	}
	return out
}

const helperName, smiName = "pitchpipe-gpu", "nvidia-smi"

// driverAgain is how often a driver is looked for that is not loaded.
const driverAgain = 10 * time.Second

// run reads until ctx ends, from when the driver is there.
func (g gpus) run(ctx context.Context, log *slog.Logger) error {
	if g.driver != "" && !await(ctx, g.driver, driverAgain) {
		return nil
	}
	if g.loaded.CompareAndSwap(false, true) {
		log.Info("the driver of the graphics cards was loaded", "driver", g.driver)
	}
	return g.source.Run(ctx)
}

// await returns when a file is there; false where ctx ended before.
func await(ctx context.Context, path string, every time.Duration) bool {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if _, err := os.Stat(path); err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

// sources is what there is to be said of the cards at this moment.
func (g gpus) sources(ctx context.Context) []api.Source {
	if !g.loaded.Load() {
		return []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "there is an NVIDIA card, and no driver yet: " + g.driver + " is not there"}}
	}
	out := gpu.New(g.source).Probe(ctx)
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
	devices, err := os.ReadDir(root.Sys("bus", "pci", "devices"))
	if err != nil {
		return false
	}
	for _, d := range devices {
		is := func(file, prefix string) bool {
			data, err := hostfs.Read(root.Sys("bus", "pci", "devices", d.Name(), file))
			return err == nil && strings.HasPrefix(string(data), prefix)
		}
		if is("vendor", vendor) && is("class", display) {
			return true
		}
	}
	return false
}

// program finds a program: the one that was named, else one beside this program, else on
// PATH.
func program(named, name string) (string, error) {
	if named != "" {
		return exec.LookPath(named)
	}
	if self, err := os.Executable(); err == nil {
		if path, err := exec.LookPath(filepath.Join(filepath.Dir(self), name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("find %s: %w", name, err)
	}
	return path, nil
}

// gpuColumns are those of jobs on nodes with GPUs.
func gpuColumns() []window.Column {
	return []window.Column{
		{Name: api.ColGPUJoules},
		{Name: api.ColGPUBusy},
		{Name: api.ColGPUMemory, Gauge: true},
		{Name: api.ColGPUs, Gauge: true},
	}
}
