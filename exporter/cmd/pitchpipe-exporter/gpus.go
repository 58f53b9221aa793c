package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
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

// gpus returns the source of readings where this node has NVIDIA's driver or a
// dcgm-exporter, else nil; and what there is to be said about it.
func gpus(ctx context.Context, o gpuOptions, root hostfs.Root, interval time.Duration, log *slog.Logger) (*gpu.Source, []api.Source) {
	driver := root.Proc("driver", "nvidia")
	absent, _, silent := collector.Ask("gpu/nvidia", func() error {
		_, err := os.Stat(driver)
		return err
	})
	if silent != nil {
		return nil, []api.Source{collector.Source("gpu/nvidia", "", silent)}
	}
	if absent != nil && o == (gpuOptions{}) {
		return nil, []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "no NVIDIA driver: " + driver + " is not there"}}
	}
	var backends []gpu.Backend
	if path, err := program(o.helper, "pitchpipe-gpu"); err == nil {
		backends = append(backends, gpu.Helper{Path: path, Interval: interval})
	}
	if path, err := program(o.smi, "nvidia-smi"); err == nil {
		backends = append(backends, gpu.SMI{Path: path, Interval: interval})
	}
	if o.dcgm != "" {
		backends = append(backends, gpu.DCGM{URL: o.dcgm, Interval: interval})
	}
	if len(backends) == 0 {
		return nil, []api.Source{{Name: "gpu/nvidia", Support: api.Unsupported, Reason: "there is a driver, and neither pitchpipe-gpu beside this program nor nvidia-smi on PATH to ask it"}}
	}
	source := gpu.NewSource(gpu.Config{Backends: backends, Logger: log})
	_ = source.Try(ctx, patience) // why not is in what the probe says
	return source, gpu.New(source).Probe(ctx)
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
		{Name: api.ColGPUJoules, Help: "Energy of the job's GPUs, by share, which is part of its joules."},
		{Name: api.ColGPUBusy, Help: "Time for which the job's GPUs were busy, by share."},
		{Name: api.ColGPUMemory, Gauge: true, Help: "Memory of GPUs that the job's processes hold."},
		{Name: api.ColGPUs, Gauge: true, Help: "GPUs that each of the job's processes is on, added up."},
	}
}
