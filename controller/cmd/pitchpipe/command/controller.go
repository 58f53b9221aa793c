package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"pitchpipe/controller/daemon"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/local"
	exporterapi "pitchpipe/exporter/api"
)

// localRestart is what a restart costs in the embedded scheduler, which has no
// queue to speak of, until one was measured.
const localRestart = time.Second

func (a *app) controller() *cobra.Command {
	return &cobra.Command{
		Use: "controller", Short: "Run the controller and, with the local driver, its embedded scheduler",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			site, err := a.cfg.LoadSite()
			if err != nil {
				return fmt.Errorf("%w site policy: %w", errInvalid, err)
			}
			if err := a.cfg.MakeState(); err != nil {
				return fmt.Errorf("%w configuration: %w", errInvalid, err)
			}
			self, err := os.Executable()
			if err != nil {
				return fmt.Errorf("find this program: %w", err)
			}
			log := a.logger()
			drv, err := local.New(local.Config{
				Dir: a.cfg.Local.Dir, Cluster: a.cfg.Local.Cluster, Cores: a.cfg.Local.Cores,
				MemoryBytes: int64(a.cfg.Local.Memory), Supervisor: []string{self, "supervise"},
				Listener: []string{self, "listen", "--socket", a.cfg.Exporter.Socket},
				Parse:    detect.Parse, CgroupRoot: local.DefaultCgroupRoot, Logger: log.With("service", "scheduler"),
			})
			if errors.Is(err, local.ErrConfig) {
				return fmt.Errorf("%w %w", errInvalid, err)
			}
			if err != nil {
				return err
			}
			meter := exporterapi.NewClient(a.cfg.Exporter.Socket)
			defer meter.Close()
			d, err := daemon.New(daemon.Parts{
				Config: a.cfg, Site: site, Driver: drv, Meter: meter, Log: log, RestartCost: localRestart,
			})
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, d.Close()) }()
			return d.Run(cmd.Context())
		},
	}
}

func absolute(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("%w path %q: %w", errInvalid, path, err)
	}
	return abs, nil
}
