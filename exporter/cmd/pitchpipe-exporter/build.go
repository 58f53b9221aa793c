package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
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

// equipment is what the exporter finds to work with on this node.
type equipment struct {
	machine *node.Node
	scanner *attrib.Scanner
	sources []collector.Collector // in the order of precedence
	energy  *energy.Found
	sockets map[int]int
	gpus    gpus
	about   api.Node                     // as it was when the exporter began
	workers map[string]*collector.Worker // of the sources that were asked
}

// inspect looks what machine this is and what can be measured.
func inspect(ctx context.Context, o options, log *slog.Logger) (equipment, error) {
	trust, err := attrib.ParseTrust(o.environ)
	if err != nil {
		return equipment{}, fmt.Errorf("--attrib.environ: %w", err)
	}
	events, err := perf.Select(o.events)
	if err != nil {
		return equipment{}, fmt.Errorf("--perf.events: %w", err)
	}
	counted := perf.New(o.root, perf.Kernel{}, events...)
	machine := node.New(o.root)
	about, err := collector.Ask("the machine's /proc", machine.Machine)
	if err != nil {
		return equipment{}, err
	}
	model, err := o.model.Or(energy.DefaultModel(about.Cores))
	if err != nil {
		return equipment{}, fmt.Errorf("--energy.model.idle-watts and --energy.model.max-watts: %w", err)
	}
	sensors, err := energy.ParseSensors(o.sensors...)
	if err != nil {
		return equipment{}, fmt.Errorf("--energy.hwmon: %w", err)
	}
	found, err := energy.Find(o.root, perf.Kernel{}, model, sensors)
	if err != nil {
		return equipment{}, err
	}
	e := equipment{
		about: about, machine: machine, scanner: attrib.NewScanner(o.root, trust), energy: found, workers: map[string]*collector.Worker{},
		// The order is the precedence where two know the same column.
		sources: []collector.Collector{cgroup.New(o.root), counted, proc.New(o.root)},
	}
	e.sockets, _ = collector.Ask("sockets", func() (map[int]int, error) { return sockets(o.root), nil }) // else the packages are taken to be one
	e.about.Schema, e.about.EnergySource, e.about.IntervalSecs = api.SchemaAccounting, found.Meter.Source(), o.sampling.Interval.Seconds()
	e.probe("attrib", e.scanner.Sources)
	e.probe("node", func() []api.Source { return machine.Probe(ctx) })
	for _, c := range e.sources {
		e.probe(c.Name(), func() []api.Source { return c.Probe(ctx) })
	}
	e.about.Sources = append(e.about.Sources, found.Sources...)
	cards, answers := findGPUs(ctx, o.gpu, o.root, o.sampling.Interval, log)
	e.about.Sources = append(e.about.Sources, answers...)
	if e.gpus = cards; cards.source != nil {
		e.sources = append(e.sources, cards.source)
	}
	for _, s := range e.about.Sources {
		if s.Name == "perf/task-clock" && s.Support == api.Supported {
			e.about.Schema = api.SchemaWith(counted.Events())
		}
	}
	return e, nil
}

// probe asks a source what it can measure. One that hangs holds up no other: it is called
// silent, and not asked again before it has answered.
func (e *equipment) probe(name string, ask func() []api.Source) {
	w := collector.NewWorker(name)
	e.workers[name] = w
	answers, silent := collector.GetIn(collector.Patience, w, func() ([]api.Source, error) { return ask(), nil })
	if silent != nil {
		answers = []api.Source{{Name: name, Support: api.Supported, Reason: "did not answer when the exporter started; restart it to probe the source again"}}
	}
	e.about.Sources = append(e.about.Sources, answers...)
}

// sockets is the package of each CPU, or nil where that is not known.
func sockets(root hostfs.Root) map[int]int {
	cpus, err := root.OnlineCPUs()
	if err != nil {
		return nil
	}
	out := make(map[int]int, len(cpus))
	for _, cpu := range cpus {
		out[cpu] = root.Package(cpu)
	}
	return out
}

func run(ctx context.Context, o options) error {
	var level slog.Level
	_ = level.UnmarshalText([]byte(o.level)) // it was checked
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	cfg, serving := o.sampling, o.serving
	var err error
	if serving.Readers, err = parseReaders(o.readers); err != nil {
		return fmt.Errorf("--api.readers: %w", err)
	}

	// 1. What machine is this, and what can be measured?
	with, err := inspect(ctx, o, log)
	if err != nil {
		return err
	}
	defer func() { _ = with.energy.Meter.Close() }() // at the end of the program
	for _, s := range with.about.Sources {
		log.Info("source", "name", s.Name, "support", string(s.Support), "reason", s.Reason)
	}

	// 2. Wire.
	store := window.New(o.kept)
	cfg.Cores, cfg.Sockets, cfg.Workers, cfg.Logger = with.about.Cores, with.sockets, with.workers, log
	if with.gpus.source != nil {
		cfg.GPUs = with.gpus.source.Joules
	}
	if o.budgets != "" {
		cfg.Budget = sampler.BudgetFolder{Path: o.budgets, Trusted: []uint32{uint32(os.Geteuid())}}.Budget
	}
	if o.state != "" {
		cfg.Keep, cfg.Boot = true, sampler.Boot(o.root)
		if cfg.Earlier, err = sampler.LoadState(o.state); err != nil {
			kept, aside := sampler.SetAside(o.state)
			log.Warn("the state file is unusable: jobs begin at 0", "err", err, "kept_aside", kept, "not_kept", aside)
		}
		cfg.Journal = func(now sampler.State) error { return sampler.SaveJournal(o.state, now) }
	}
	if o.leaf {
		cgroups, err := collector.Ask("--perf.leaf", func() (*perf.Cgroups, error) { return perf.NewCgroups(o.root) })
		switch {
		case errors.Is(err, collector.ErrSilent), errors.Is(err, perf.ErrNoCgroupsNeeded):
			log.Info("no job gets a perf cgroup", "reason", err)
		case err != nil:
			return fmt.Errorf("--perf.leaf: %w", err)
		default:
			cfg.PerfCgroups = cgroups
			defer func() { _ = cgroups.Close() }() // jobs that run on stay in theirs
		}
	}
	sample := sampler.New(cfg, with.scanner, with.sources, with.machine, with.energy.Meter, store)
	me := &self{with: with, is: describeSelf(o)}
	about := func() api.Node { return me.node(ctx, sample.Snapshot()) }
	page := metrics.Config{
		Version: release(), Node: about, Store: store, Snapshot: sample.Snapshot,
		Others: []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})},
	}
	if with.gpus.source != nil {
		page.GPUs = with.gpus.source.Snapshot
	}
	serving.Logger, serving.ShowJobs = log, o.jobs == "all"
	if serving.Blind = me.is.Blind; serving.Blind != "" {
		log.Warn("no reports are taken", "reason", serving.Blind)
	}
	serve, err := server.New(serving, about, store, sample, metrics.Handler(page))
	if err != nil {
		return err
	}

	// 3. Run until the end.
	group, ctx := errgroup.WithContext(ctx)
	if with.gpus.source != nil {
		group.Go(func() error { return with.gpus.run(ctx, log) })
	}
	sampled, last := context.WithCancel(context.WithoutCancel(ctx))
	group.Go(func() error {
		defer last()
		return sample.Run(ctx)
	})
	group.Go(func() error { return serve.Run(ctx) })
	if o.state != "" {
		group.Go(func() error {
			keep(sampled, o.state, sample, &me.unkept, log)
			return nil
		})
	}
	return group.Wait()
}

// keep writes down now and then, and after the last sample, what the next exporter has to know.
// A state that cannot be written stops no sampling.
func keep(ctx context.Context, path string, sample *sampler.Sampler, why *atomic.Value, log *slog.Logger) {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		text := ""
		if err := sampler.SaveState(path, sample.Snapshot().State); err != nil {
			text = err.Error()
		}
		if was, _ := why.Swap(text).(string); text != was {
			log.Warn("state changed", "err", text)
		}
	}
}

// parseReaders turns the names or numbers of accounts into numbers. The program is
// static: of names it knows those in /etc/passwd alone, so that an account of a
// directory service is given by its number.
func parseReaders(accounts []string) ([]uint32, error) {
	var out []uint32
	for _, account := range accounts {
		uid, err := strconv.ParseUint(account, 10, 32)
		if err != nil {
			known, err := user.Lookup(account)
			if err != nil {
				return nil, fmt.Errorf("%q: %w; an account that is not in /etc/passwd is given by its number", account, err)
			}
			if uid, err = strconv.ParseUint(known.Uid, 10, 32); err != nil {
				return nil, fmt.Errorf("%q has no number: %w", account, err)
			}
		}
		out = append(out, uint32(uid))
	}
	return out, nil
}
