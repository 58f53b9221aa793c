package powercapsim

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/hostfs"
)

// Follow makes a tree. While run runs, its joules follow this machine's own load, with as many
// cores.
func Follow(cfg Config) (run func(context.Context) error, err error) {
	machine := node.New(hostfs.Root{})
	is, err := machine.Machine()
	if err != nil {
		return nil, err
	}
	cfg.Cores = is.Cores
	sim, err := New(cfg)
	if err != nil {
		return nil, err
	}
	online, err := hostfs.Read(hostfs.Root{}.Sys("devices", "system", "cpu", "online"))
	if err != nil {
		return nil, err
	}
	cpus := filepath.Join(cfg.Dir, "devices", "system", "cpu")
	if err := os.MkdirAll(cpus, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(cpus, "online"), online, 0o644); err != nil { //nolint:gosec // sysfs files are for all to read
		return nil, err
	}
	return func(ctx context.Context) error {
		return sim.Run(ctx, 100*time.Millisecond, func() (float64, error) {
			cpu, err := machine.CPU()
			return cpu.Busy, err
		})
	}, nil
}
