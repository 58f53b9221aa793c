package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	consul "github.com/hashicorp/consul/api"
	nomadapi "github.com/hashicorp/nomad/api"
	"github.com/spf13/cobra"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/local"
	"pitchpipe/driver/nomad"
	"pitchpipe/driver/slurm"
	"pitchpipe/driver/slurm/broker"
	"pitchpipe/driver/slurm/command"
	exporterapi "pitchpipe/exporter/api"
)

func (a *app) controller() *cobra.Command {
	return settings(&cobra.Command{
		Use: "controller", Short: "Run the controller, and the scheduler if driver is local",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			site, err := a.cfg.LoadSite()
			if err != nil {
				return invalid("site policy", err)
			}
			if err := a.cfg.MakeState(); err != nil {
				return invalid("configuration", err)
			}
			exporters, err := a.exporters(a.logger().With("service", "exporters"))
			if err != nil {
				return err
			}
			defer exporters.Close()
			storeLog := a.logger().With("service", "store")
			candidate, err := daemon.OpenCandidate(cmd.Context(), a.cfg.Store, func() (*nomadapi.Client, error) { return a.nomadStore(storeLog) }, storeLog)
			if err != nil {
				return invalid("configuration", err)
			}
			drv, cost, err := a.driver(cmd.Context(), site, exporters, candidate)
			if err != nil {
				return err
			}
			if c, ok := drv.(io.Closer); ok {
				defer func() { err = errors.Join(err, c.Close()) }()
			}
			d, err := daemon.New(daemon.Parts{
				Config: a.cfg, Site: site, Driver: drv, Exporters: exporters, Candidate: candidate, Log: a.logger(), RestartCost: cost,
			})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			return d.Run(cmd.Context())
		},
	}, "socket", "state", "driver", "listen", "job_labels", "local.", "exporter.", "slurm.", "nomad.", "store.", "log.", "resync", "site")
}

// exporters are those of the nodes that the configuration or a registry of services names.
func (a *app) exporters(log *slog.Logger) (*nodes.Exporters, error) {
	with, err := a.cfg.Exporter, error(nil)
	cfg := nodes.Config{Pattern: with.Nodes, Socket: with.Socket, Cert: with.Cert, Key: with.Key, CA: with.CA, Log: log}
	switch with.Discovery {
	case "nomad":
		var client *nomadapi.Client
		if client, err = a.nomadClient(log); err == nil {
			cfg.Find, err = nodes.FindInNomad(client, with.Service)
		}
	case "consul":
		// Its address, token and certificates are in Consul's own environment variables.
		var client *consul.Client
		if client, err = consul.NewClient(consul.DefaultConfig()); err == nil {
			cfg.Find, err = nodes.FindInConsul(client, with.Service)
		}
	}
	if err != nil {
		return nil, invalid("configuration: exporter.service", err)
	}
	e, err := nodes.New(cfg)
	return e, invalid("configuration: exporter", err)
}

// driver opens the scheduler that the configuration names, and says what a restart
// costs there until one was measured. Candidate is nil where the controller is alone.
func (a *app) driver(ctx context.Context, site *config.SitePolicy, exporters *nodes.Exporters, candidate *daemon.Candidate) (driver.Driver, time.Duration, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, fmt.Errorf("find this program: %w", err)
	}
	log := a.logger().With("service", "scheduler")
	listener := []string{self, "listen", "--socket", a.cfg.Exporter.Socket}
	var drv driver.Driver
	cost := time.Second // the embedded scheduler has no queue to speak of
	switch a.cfg.Driver {
	case "slurm":
		cost = 10 * time.Second // nodes and scheduler take their time
		cfg := slurm.Config{
			Dir: a.cfg.Slurm.Dir, Partitions: a.cfg.Slurm.Partitions, Interval: a.cfg.Slurm.Interval, Marked: a.cfg.Slurm.Plugin, Wake: a.cfg.Slurm.Wake,
			Commands: command.Exec{Bin: a.cfg.Slurm.Bin, Conf: a.cfg.Slurm.Conf}, Listener: listener,
			TaskProlog: a.cfg.Slurm.TaskProlog, SettingsDir: a.cfg.Slurm.Settings, Parse: detect.For("slurm"), Logger: log,
			Above: func(j driver.Job) bool { return site.For(j.Partition, j.Account, j.QOS, j.Owner).AboveRequest },
		}
		if a.cfg.Slurm.Mode == "site" {
			cfg.Everyone, cfg.Actor = true, broker.NewClient(a.cfg.Slurm.Broker)
			cfg.Saves = func(ctx context.Context, node string, job driver.JobID, attempt int) (exporterapi.Saves, error) {
				return exporters.Saves(ctx, node, "slurm/"+string(job), attempt)
			}
		}
		drv, err = slurm.New(ctx, cfg)
	case "nomad":
		cost = 5 * time.Second // an evaluation, a placement, and the task's directory
		drv, err = a.nomadDriver(ctx, exporters, candidate, log)
	default:
		drv, err = local.New(local.Config{
			Dir: a.cfg.Local.Dir, Cluster: a.cfg.Local.Cluster, Cores: a.cfg.Local.Cores,
			MemoryBytes: int64(a.cfg.Local.Memory), Supervisor: []string{self, "supervise"}, Listener: listener,
			Env:        map[string]string{exporterapi.EnvSocket: a.cfg.Exporter.Socket},
			CgroupRoot: local.DefaultCgroupRoot, Logger: log,
		})
	}
	if errors.Is(err, local.ErrConfig) || errors.Is(err, slurm.ErrConfig) || errors.Is(err, nomad.ErrConfig) {
		err = fmt.Errorf("%w %w", errInvalid, err)
	}
	return drv, cost, err
}

func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	return abs, invalid(fmt.Sprintf("path %q", path), err)
}
