package faultslurm_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/stanza"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/filterproxy"
)

// The environment of the roles that this binary plays.
const (
	roleController = "fault-controller"
	roleBroker     = "fault-broker"
	envExporter    = "FAULT_EXPORTER"
	envOrders      = "FAULT_ORDERS"
	envPartition   = "FAULT_PARTITION"
	envBroker      = "FAULT_BROKER"     // socket; empty in owner mode
	envController  = "FAULT_CONTROLLER" // uid whom the broker answers
	brokerSocket   = "broker.sock"
)

// patient is how long one command of Slurm may take: short, so that a stalled
// slurmctld is a time-out.
const patient = 6 * time.Second

// controller runs in its own process as the user whose jobs it tunes. It is the
// one of the pitchpipe program but for its haste and for dying where an order says so.
func controller(dir string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	site, err := config.LoadSite(filepath.Join(os.Getenv(envOrders), "site.yaml"))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	socket := os.Getenv(envExporter)
	meter := exporterapi.NewClient(socket)
	defer meter.Close()
	h := &hook{dir: os.Getenv(envOrders), jobs: filepath.Join(dir, "jobs", "jobs")}
	run := command.Exec{Timeout: patient}
	cfg := slurm.Config{
		Listener: []string{filepath.Join(filepath.Dir(self), "pitchpipe"), "listen", "--socket", socket},
		Dir:      filepath.Join(dir, "jobs"), Parse: detect.For("slurm"), Interval: 300 * time.Millisecond, Logger: log,
		Commands: run, Actor: marking{slurmctl.Commands{Runner: run, Logger: log}, h}, AfterStep: h.reached,
		Partitions: []string{os.Getenv(envPartition)}, TaskProlog: true, SettingsDir: filepath.Join(dir, "env"), Quiet: 5 * time.Second, Window: 20 * time.Second,
	}
	exporters := nodes.One(filterproxy.Client{Client: meter}, log)
	defer exporters.Close()
	if broker := os.Getenv(envBroker); broker != "" {
		asSite(&cfg, broker, h, exporters)
	}
	drv, err := slurm.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drv.Close()) }()
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{
			Socket: filepath.Join(dir, "controller.sock"), State: filepath.Join(dir, "state"), Resync: 2 * time.Second,
		},
		Site: site, Driver: drv, Exporters: exporters, Meter: filterproxy.Client{Client: meter}, Log: log, Tick: 200 * time.Millisecond, Step: 100 * time.Millisecond,
		AfterSave: func(r *reconcile.Record) {
			at := string(r.Phase) + ":"
			if m := r.Move; m != nil {
				at = string(m.Decision.Action) + ":" + string(m.Step)
			}
			h.reached("saved:" + at)
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Run(ctx)
}

// asSite makes the driver one of everybody's jobs, who acts by the hand of a broker.
func asSite(cfg *slurm.Config, socket string, h *hook, exporters *nodes.Exporters) {
	client := broker.NewClient(socket)
	client.Timeout = 2 * patient
	cfg.Everyone, cfg.Marked, cfg.Actor = true, true, marking{client, h}
	cfg.Saves = func(ctx context.Context, node string, job driver.JobID, attempt int) (exporterapi.Saves, error) {
		return exporters.Saves(ctx, node, "slurm/"+string(job), attempt)
	}
}

// serveBroker is the broker of the pitchpipe program, but for dying where an order says so.
func serveBroker(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	uid, err := strconv.ParseUint(os.Getenv(envController), 10, 32)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	run := command.Exec{Timeout: patient}
	h := &hook{dir: os.Getenv(envOrders)}
	s, err := broker.New(broker.Config{
		Socket: filepath.Join(dir, brokerSocket), Dir: filepath.Join(dir, "state"), Actor: marking{slurmctl.Commands{Runner: run, Logger: log}, h}, Runner: run,
		Controllers: []uint32{uint32(uid)}, Above: []string{sitePartition}, Restarts: 100, Logger: log, AfterStep: h.reached,
		Script: written,
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// written judges the stanza of a script, as the pitchpipe program does.
func written(name string, script []byte) (broker.Stanza, error) {
	job, err := detect.For("slurm")(name, script, nil)
	if err != nil {
		return broker.Stanza{}, err
	}
	policy, err := stanza.Policy(job)
	if err != nil {
		return broker.Stanza{}, err
	}
	// The jobs of these tests have one knob of the two that a broker looks at.
	out := broker.Stanza{Apply: policy.Mode == tuning.Apply, Cores: broker.Knob{Values: []int64{1, 2, 3}}}
	if c := policy.Checkpoint; c != nil {
		out.Signal, out.Exit, out.Done = c.Signal, c.Exit, c.Done != ""
	}
	return out, nil
}

// marking notes for whom an effect is, and can be struck before it.
type marking struct {
	slurmctl.Actor

	hook *hook
}

func (m marking) before(job, verb string) {
	m.hook.acting(job)
	m.hook.reached("before:" + verb)
}

func (m marking) Signal(ctx context.Context, job, signal string) error {
	m.before(job, "signal")
	return m.Actor.Signal(ctx, job, signal)
}

func (m marking) Do(ctx context.Context, v slurmctl.Verb, job string) error {
	if v == slurmctl.Requeue || v == slurmctl.Discard || v == slurmctl.Release {
		m.before(job, string(v))
	}
	return m.Actor.Do(ctx, v, job)
}

func (m marking) Update(ctx context.Context, job string, u slurmctl.Update) error {
	m.before(job, "update")
	return m.Actor.Update(ctx, job, u)
}
