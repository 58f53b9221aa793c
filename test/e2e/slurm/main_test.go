package slurm_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/driver/slurm"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/slurmcluster"
)

// The test binary is the controller too: it is the one of the pitchpipe program but
// for what a busy machine would make of every epoch.
const roleController = "e2e-controller"

// world is what all tests share: the cluster and the programs.
type world struct {
	cluster slurmcluster.Shared

	once sync.Once
	dir  string
	err  error
}

// shared is started by the first test that needs it. Each node says it has more CPUs
// than the machine, so that jobs, which mostly wait, do not wait for each other. A
// job that waits for another has a partition of its own: Slurm adds the time limit of
// every waiting job of a partition to what it foretells for the next one.
var shared = &world{cluster: slurmcluster.Shared{Options: slurmcluster.Options{
	Accounting: true, CPUs: 16,
	Lines: []string{"RequeueExitHold=85", "PartitionName=main Nodes=ALL Default=YES State=UP"},
}}}

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == roleController {
		if err := controller(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	flag.Parse()
	status := m.Run()
	if err := errors.Join(shared.cluster.Stop(context.Background()), os.RemoveAll(shared.dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		status = 1
	}
	os.Exit(status)
}

// programs is the folder of the programs, which every user can reach: pitchpipe, its
// exporter, workload and this test binary as controller.
func (w *world) programs(t *testing.T) string {
	t.Helper()
	w.once.Do(w.make)
	if w.err != nil {
		t.Fatal(w.err)
	}
	return w.dir
}

func (w *world) make() {
	if w.dir, w.err = os.MkdirTemp("/tmp", "ppslurm-e2e-"); w.err != nil {
		return
	}
	if w.err = os.Chmod(w.dir, 0o755); w.err != nil { //nolint:gosec // other users run what is in it
		return
	}
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", w.dir, "pitchpipe/controller/cmd/pitchpipe",
		"pitchpipe/exporter/cmd/pitchpipe-exporter", "pitchpipe/test/workloads/cmd/workload").CombinedOutput()
	if err != nil {
		w.err = fmt.Errorf("go build: %w\n%s", err, out)
		return
	}
	w.err = copySelf(filepath.Join(w.dir, "controller"))
}

func copySelf(to string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	f, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755) //nolint:gosec // it is a program
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close())
}

// controller runs in a process of its own as the user whose jobs it tunes.
func controller(dir string) (err error) {
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
		Listener: []string{filepath.Join(filepath.Dir(self), "pitchpipe"), "listen", "--socket", os.Getenv(exporterSocket)},
		Dir:      filepath.Join(dir, "jobs"), Parse: detect.ParseForSlurm, Interval: 300 * time.Millisecond, Logger: log,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drv.Close()) }()
	meter := exporterapi.NewClient(os.Getenv(exporterSocket))
	defer meter.Close()
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{
			Socket: filepath.Join(dir, "controller.sock"), State: filepath.Join(dir, "state"), Resync: 2 * time.Second,
		},
		Site: site, Driver: drv, Meter: calm{meter}, Log: log, Tick: 200 * time.Millisecond, Step: 100 * time.Millisecond,
		RestartCost: 50 * time.Millisecond,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Run(ctx)
}

// calm hides what others do on the node: the machine that runs these tests is busy
// with others, and every epoch would count as disturbed.
type calm struct{ *exporterapi.Client }

func (c calm) Window(ctx context.Context, job string, attempt int, after uint64) (exporterapi.Window, error) {
	w, err := c.Client.Window(ctx, job, attempt, after)
	for _, s := range w.Samples {
		delete(s.Values, exporterapi.ColNodeBusy)
		delete(s.Values, exporterapi.ColNodeSteal)
		delete(s.Values, exporterapi.ColCPUPressure)
	}
	return w, err
}
