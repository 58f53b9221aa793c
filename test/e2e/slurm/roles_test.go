package slurm_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/filterproxy"
)

// What the test binary is besides a test: a process of another user.
const (
	roleController = "e2e-controller"
	roleCalm       = "e2e-calm"
)

func roles() map[string]func(args []string) error {
	return map[string]func(args []string) error{roleController: playController, roleCalm: playCalm}
}

// ownerDir is the folder of a user's own controller, below his home.
const ownerDir = "ctl"

// playController is a user's own controller, in a process of his: the one of the
// pitchpipe program, but for the times and for what a busy machine would make of every
// epoch. Its arguments are its folder,
// the exporter's socket and the file of the hook.
func playController(args []string) (err error) {
	dir, socket, wake := args[0], args[1], args[2]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	site, err := config.LoadSite(filepath.Join(dir, "site.yaml"))
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	drv, err := slurm.New(ctx, slurm.Config{
		Listener:   []string{filepath.Join(filepath.Dir(self), "pitchpipe"), "listen", "--socket", socket},
		Partitions: []string{ownerPartition}, TaskProlog: true, SettingsDir: filepath.Join(dir, "settings"),
		Dir: filepath.Join(dir, "jobs"), Parse: detect.For("slurm"), Interval: 300 * time.Millisecond, Wake: wake, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drv.Close()) }()
	meter := exporterapi.NewClient(socket)
	defer meter.Close()
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{
			Socket: filepath.Join(dir, "controller.sock"), State: filepath.Join(dir, "state"), Resync: 2 * time.Second,
		},
		Site: site, Driver: drv, Meter: filterproxy.Client{Client: meter}, Log: log, Tick: 400 * time.Millisecond, Step: 100 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Run(ctx)
}

// playCalm runs between a controller and the exporter and hides the same from a
// program that cannot be changed. It runs as the controller's user, so that the exporter
// shows what that user may see. Its arguments are its socket and the exporter's.
func playCalm(args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return filterproxy.Serve(ctx, args[0], args[1])
}
