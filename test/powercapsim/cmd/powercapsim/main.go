package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/test/powercapsim"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "powercapsim:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	var cfg powercapsim.Config
	f := flag.NewFlagSet("powercapsim", flag.ContinueOnError)
	f.StringVar(&cfg.Dir, "dir", "", "sysfs to make")
	f.IntVar(&cfg.Packages, "packages", 1, "sockets")
	f.Float64Var(&cfg.IdleWatts, "idle-watts", 20, "without work")
	f.Float64Var(&cfg.MaxWatts, "max-watts", 100, "with all cores busy")
	f.Uint64Var(&cfg.Wrap, "wrap", powercapsim.WrapIntel, "largest value of a counter in microjoules")
	f.BoolVar(&cfg.DRAM, "dram", false, "with a DRAM zone for each package")
	f.BoolVar(&cfg.PSys, "psys", false, "with a zone of the whole platform")
	every := f.Duration("interval", 100*time.Millisecond, "between two steps")
	if err := f.Parse(args); err != nil {
		return err
	}
	machine := node.New(hostfs.Root{})
	is, err := machine.Machine()
	if err != nil {
		return err
	}
	cfg.Cores = is.Cores
	sim, err := powercapsim.New(cfg)
	if err != nil {
		return err
	}
	online, err := hostfs.Read(hostfs.Root{}.Sys("devices", "system", "cpu", "online"))
	if err != nil {
		return err
	}
	cpus := filepath.Join(cfg.Dir, "devices", "system", "cpu")
	if err := os.MkdirAll(cpus, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(cpus, "online"), online, 0o644); err != nil { //nolint:gosec // sysfs files are for all to read
		return err
	}
	return sim.Run(ctx, *every, func() (float64, error) {
		cpu, err := machine.CPU()
		return cpu.Busy, err
	})
}
