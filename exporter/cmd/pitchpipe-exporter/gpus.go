package main

import (
	"cmp"
	"context"
	"fmt"
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
	g := gpus{source: gpu.NewSource(log, backends...)}
	if waits {
		g.driver = driver
	} else {
		_ = g.source.Try(ctx, patience) // why not is in what the probe says
	}
	return g, g.sources(ctx)
}

// backends are those that can be asked; with all, also programs that are not there yet,
// since they may come with the driver.
func backends(o gpuOptions, interval time.Duration, all bool) []gpu.Backend {
	var out []gpu.Backend
	helper, err := program(o.helper, helperName)
	if self, unknown := os.Executable(); err != nil && all && unknown == nil {
		helper, err = filepath.Join(filepath.Dir(self), helperName), nil
	}
	if err == nil {
		out = append(out, gpu.Helper{Path: helper, Interval: interval})
	}
	smi, err := program(o.smi, smiName)
	if err == nil || all {
		out = append(out, gpu.SMI{Path: cmp.Or(smi, smiName), Interval: interval})
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

// sources is what there is to be said of the cards at this moment.
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

// program finds a program: the one that was named, which may not be there yet, else one beside
// this program, else on PATH.
func program(named, name string) (string, error) {
	if named != "" {
		return named, nil
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
