package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/cgroup"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/collector/perf"
	"pitchpipe/exporter/collector/proc"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/metrics"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/server"
	"pitchpipe/exporter/window"
)

type options struct {
	socket   string
	address  string
	root     hostfs.Root
	interval time.Duration
	discover time.Duration
	samples  int
	keep     time.Duration
	model    energy.Model
	level    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := command().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "pitchpipe-exporter:", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	var o options
	cmd := &cobra.Command{
		Use:           "pitchpipe-exporter",
		Short:         "Samples the jobs of this node and serves them to the controller and to Prometheus",
		Args:          cobra.NoArgs,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.socket, "socket", api.DefaultSocket, "Unix socket for jobs, samples, progress and metrics")
	f.StringVar(&o.address, "web.listen-address", "127.0.0.1:9820", "loopback address for /metrics; empty = none")
	f.StringVar(&o.root.ProcFS, "path.procfs", "/proc", "where procfs is mounted")
	f.StringVar(&o.root.SysFS, "path.sysfs", "/sys", "where sysfs is mounted")
	f.StringVar(&o.root.CgroupFS, "path.cgroupfs", "", "where the cgroup hierarchies are mounted; empty = fs/cgroup below --path.sysfs")
	f.DurationVar(&o.interval, "sampling.interval", time.Second, "time between samples")
	f.DurationVar(&o.discover, "sampling.discover", 250*time.Millisecond, "time between looks for new jobs")
	f.IntVar(&o.samples, "sampling.ring", 1800, "samples kept of each attempt of a job")
	f.DurationVar(&o.keep, "sampling.keep", 15*time.Minute, "how long an ended attempt is kept")
	f.Float64Var(&o.model.Idle, "energy.model.idle-watts", 0, "node without work, for modelled energy and the idle part of measured; 0 = 20 W and 1.5 W a core")
	f.Float64Var(&o.model.Max, "energy.model.max-watts", 0, "node with all cores busy, for modelled energy; 0 = 20 W and 7.5 W a core")
	f.StringVar(&o.level, "log.level", "info", "debug, info, warn or error")
	return cmd
}

func run(ctx context.Context, o options) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(o.level)); err != nil {
		return fmt.Errorf("--log.level: %w", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if o.interval < 50*time.Millisecond || o.discover < 10*time.Millisecond {
		return fmt.Errorf("--sampling.interval %v, --sampling.discover %v: want at least 50ms and 10ms", o.interval, o.discover)
	}

	// 1. What machine is this, and what can be measured?
	machine := node.New(o.root)
	is, err := machine.Machine()
	if err != nil {
		return err
	}
	model, err := o.model.Or(energy.DefaultModel(is.Cores))
	if err != nil {
		return err
	}
	var meter energy.Meter = energy.NewModeller(model)
	rapl, raplErr := energy.NewPowercap(o.root, model)
	if raplErr == nil {
		meter = rapl
	}
	scanner := attrib.NewScanner(o.root)
	// The order is the precedence where two know the same column.
	sources := []collector.Collector{cgroup.New(o.root), perf.New(o.root), proc.New(o.root)}
	about := api.Node{
		Hostname: is.Hostname, CPUModel: is.CPUModel, Cores: is.Cores, MemoryBytes: is.MemoryBytes, MachineKind: is.Kind(),
		Schema: api.SchemaAccounting, EnergySource: meter.Source(), IntervalSecs: o.interval.Seconds(),
		Sources: append(scanner.Sources(), machine.Probe(ctx)...),
	}
	for _, c := range sources {
		about.Sources = append(about.Sources, c.Probe(ctx)...)
	}
	about.Sources = append(about.Sources, energy.Probe(rapl, raplErr, model)...)
	for _, s := range about.Sources {
		if s.Name == "perf/task-clock" && s.Support == api.Supported {
			about.Schema = api.SchemaSoftware
		}
		log.Info("source", "name", s.Name, "support", string(s.Support), "reason", s.Reason)
	}

	// 2. Wire.
	store := window.New(window.Config{Samples: o.samples, Keep: o.keep})
	sample := sampler.New(sampler.Config{Interval: o.interval, Discover: o.discover, Cores: is.Cores, Logger: log},
		scanner, sources, machine, meter, store)
	shown, err := metrics.Handler(metrics.New(version(), about, store, sample.Snapshot),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	serve, err := server.New(server.Config{Socket: o.socket, Metrics: o.address, Logger: log}, about, store, sample, shown)
	if err != nil {
		return err
	}

	// 3. Run until told to stop.
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return sample.Run(ctx) })
	group.Go(func() error { return serve.Run(ctx) })
	return group.Wait()
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
