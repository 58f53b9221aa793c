package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"pitchpipe/controller/cmd/pitchpipe/command"
	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon"
	"pitchpipe/controller/reconcile"
	"pitchpipe/driver/local"
	"pitchpipe/driver/local/supervise"
	exporterapi "pitchpipe/exporter/api"
	"pitchpipe/test/filterproxy"
	"pitchpipe/test/sandbox"
)

// The test binary is the controller, the supervisor and the listener too, so
// that what is killed is what is tested.
const (
	roleController = "e2e-controller"
	envDir         = "E2E_DIR"
	envDeadly      = "E2E_DEADLY" // die once at each durable step; the file remembers them
)

// programs is the folder of the programs that the tests build.
type programs struct{ dir string }

func (p programs) path(name string) string { return filepath.Join(p.dir, name) }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "supervise":
			os.Exit(supervise.Main(context.Background(), os.Args[2:]))
		case "listen":
			// As the program does: these let it deliver the last lines of the job.
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			code := command.Run(ctx, command.World{
				Args: os.Args[1:], Environ: os.Environ(), Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
			})
			stop()
			os.Exit(code)
		case roleController:
			os.Exit(controller())
		}
	}
	flag.Parse()
	status := m.Run()
	shop.clear()
	os.Exit(status)
}

// workshop makes the programs when the first test asks for them.
type workshop struct {
	once sync.Once
	dir  string
	err  error
}

var shop workshop

func (w *workshop) make() {
	if w.dir, w.err = os.MkdirTemp("", "pitchpipe-e2e-"); w.err != nil {
		return
	}
	// Some tests act as another user, who has to find the programs.
	if w.err = os.Chmod(w.dir, 0o755); w.err != nil {
		return
	}
	w.err = sandbox.Build(context.Background(), w.dir, sandbox.Pitchpipe, sandbox.Exporter, sandbox.Workload, sandbox.FaultJob)
}

func (w *workshop) clear() {
	if w.dir != "" {
		_ = os.RemoveAll(w.dir)
	}
}

// build compiles the programs that the tests start, once for all tests.
func build(t *testing.T) programs {
	t.Helper()
	shop.once.Do(shop.make)
	if shop.err != nil {
		t.Fatal(shop.err)
	}
	return programs{shop.dir}
}

// controller is the process that the crash tests kill.
func controller() int {
	dir := os.Getenv(envDir)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	die := func(string) {}
	if deaths := os.Getenv(envDeadly); deaths != "" {
		die = dieOnce(deaths)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(ctx, dir, die, log); err != nil {
		log.Error("controller ended", "error", err)
		return 1
	}
	return 0
}

// dieOnce ends the process with SIGKILL the first time each step is reached, over
// all lives of the controller: the file remembers.
func dieOnce(path string) func(step string) {
	var mu sync.Mutex
	return func(step string) {
		mu.Lock()
		defer mu.Unlock()
		seen, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			panic(err)
		}
		for line := range strings.Lines(string(seen)) {
			if strings.TrimSuffix(line, "\n") == step {
				return
			}
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			panic(err)
		}
		if _, err := fmt.Fprintln(f, step); err != nil {
			panic(err)
		}
		if err := f.Sync(); err != nil {
			panic(err)
		}
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // the signal is on its way
	}
}

func serve(ctx context.Context, dir string, die func(string), log *slog.Logger) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	site, err := config.LoadSite(filepath.Join(dir, "site.yaml"))
	if err != nil {
		return err
	}
	socket := filepath.Join(dir, "exporter.sock")
	drv, err := local.New(local.Config{
		Dir: filepath.Join(dir, "jobs"), Cluster: cluster(dir), Supervisor: []string{self, "supervise"},
		Listener:   []string{self, "listen", "--socket", socket},
		CgroupRoot: local.DefaultCgroupRoot, Logger: log, AfterStep: func(step string) { die("driver " + step) },
	})
	if err != nil {
		return err
	}
	meter := exporterapi.NewClient(socket)
	defer meter.Close()
	d, err := daemon.New(daemon.Parts{
		Config: config.Config{
			Socket: filepath.Join(dir, "controller.sock"), State: filepath.Join(dir, "state"), Resync: 2 * time.Second,
		},
		Site: site, Driver: drv, Meter: filterproxy.Client{Client: meter}, Log: log, Tick: 300 * time.Millisecond, Step: 30 * time.Millisecond,
		RestartCost: time.Second, // as the program has it
		AfterSave: func(r *reconcile.Record) {
			if r.Move != nil {
				die(fmt.Sprintf("saved %s %s", r.Move.Decision.Action, r.Move.Step))
			}
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.Run(ctx)
}

// cluster is a name that no other test on this machine has.
func cluster(dir string) string {
	return "e2e-" + strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, filepath.Base(filepath.Dir(dir))+filepath.Base(dir)) + fmt.Sprint(os.Getppid())
}
