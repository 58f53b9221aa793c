package daemon

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/watch"
	"pitchpipe/driver"
	"pitchpipe/driver/jobfile/detect"
)

// runner is a driver that runs beside the controller, as the embedded scheduler
// does.
type runner interface {
	Run(ctx context.Context) error
}

// Parts are what a Daemon is built from.
type Parts struct {
	Config config.Config
	Site   *config.SitePolicy
	Driver driver.Driver
	// Exporters are those of the nodes; the caller closes them. Nil = Meter knows all.
	Exporters *nodes.Exporters
	Meter     Meter
	Log       *slog.Logger

	// Seat is this controller's part of a store that several share, of whom one leads;
	// the caller closes it after the Daemon. Nil = this one is alone.
	Seat *Seat

	// Tick and Step are those of reconcile.Config; 0 = its defaults.
	Tick, Step time.Duration
	// RestartCost is assumed until one was measured; 0 = the loop's default.
	RestartCost time.Duration
	// AfterSave is nil outside of crash tests.
	AfterSave func(reconcile.Phase, driver.StepKind)
}

// Daemon is a controller. Use New.
type Daemon struct {
	cfg     config.Config
	driver  driver.Driver
	parse   detect.Parser
	store   *knowledge.Store
	records *records
	pauses  *pauses
	audit   *auditLog
	rooms   *rooms
	queue   *watch.Queue
	loop    *reconcile.Loop
	meter   *nodes.Exporters // nil where they are the caller's
	seat    *Seat            // nil: this controller is alone
	log     *slog.Logger
}

// New opens the durable state and joins the rooms; nothing runs before Run. The
// caller closes the Daemon.
func New(parts Parts) (*Daemon, error) {
	if err := os.MkdirAll(parts.Config.State, 0o700); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	d := &Daemon{cfg: parts.Config, driver: parts.Driver, log: parts.Log, queue: watch.NewQueue()}
	if err := d.open(parts); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := d.join(parts); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open opens the durable state. The file of a controller that shares its state is a
// working copy, and another one than that of a controller that is alone: neither is
// ever made the other's.
func (d *Daemon) open(parts Parts) (err error) {
	file, options := "knowledge.db", knowledge.Options{}
	if d.seat = parts.Seat; d.seat != nil {
		file, options.Mirror = "copy.db", d.seat.mirror
	}
	d.store, err = knowledge.Open(filepath.Join(parts.Config.State, file), options)
	return err
}

func (d *Daemon) join(parts Parts) (err error) {
	d.audit = newAudit(parts.Config.State)
	if d.pauses, err = loadPauses(d.store); err != nil {
		return err
	}
	if d.records, err = loadRecords(d.store); err != nil {
		return err
	}
	d.parse = detect.For(parts.Driver.Name())
	exporters := parts.Exporters
	if exporters == nil {
		d.meter = nodes.One(parts.Meter, parts.Log)
		exporters = d.meter
	}
	d.rooms = &rooms{
		driver: parts.Driver, parse: d.parse, nodes: exporters, store: d.store, site: parts.Site, pauses: d.pauses,
		audit: d.audit, seat: d.seat, log: parts.Log,
	}
	if err := d.rooms.loadModel(); err != nil && !errors.Is(err, knowledge.ErrStale) {
		return err
	}
	d.loop = reconcile.New(reconcile.Config{
		Scheduler: parts.Driver, Records: d.records, Queue: d.queue, Stages: d.rooms.stages(), Log: parts.Log,
		Tick: parts.Tick, Step: parts.Step, RestartCost: parts.RestartCost, AfterSave: parts.AfterSave,
	})
	return nil
}

// Close releases the durable state.
func (d *Daemon) Close() error {
	if d.meter != nil {
		d.meter.Close()
	}
	if d.store != nil {
		return d.store.Close()
	}
	return nil
}

// Run serves until ctx ends; jobs that run then go on running.
func (d *Daemon) Run(ctx context.Context) error {
	metrics := d.metrics()
	listener, err := listenUnix(ctx, d.cfg.Socket)
	if err != nil {
		return err
	}
	servers := []*http.Server{d.server(d.handler(metrics))}
	listeners := []net.Listener{d.door(listener)}
	if d.cfg.Listen != "" {
		var lc net.ListenConfig
		tcp, err := lc.Listen(ctx, "tcp", d.cfg.Listen)
		if err != nil {
			return errors.Join(fmt.Errorf("listen for /metrics: %w", err), listener.Close())
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", metrics)
		servers, listeners = append(servers, d.server(mux)), append(listeners, tcp)
	}

	group, gctx := errgroup.WithContext(ctx)
	for i, s := range servers {
		group.Go(func() error { return closed(s.Serve(listeners[i])) })
		group.Go(func() error {
			<-gctx.Done()
			// The parent context has ended: the last answers get a fresh one.
			stop, cancel := context.WithTimeout(context.WithoutCancel(gctx), 2*time.Second)
			defer cancel()
			err := s.Shutdown(stop)
			if errors.Is(err, context.DeadlineExceeded) {
				return s.Close() // who still has not asked anything gets no answer
			}
			return err
		})
	}
	group.Go(func() error { return d.Tune(gctx) })
	d.log.Info("controller ready", "socket", d.cfg.Socket, "state", d.cfg.State, "driver", d.driver.Name())
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (d *Daemon) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(newCollector(d))
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Handler is the API without a socket, for a process that serves itself. The
// caller is who peer.NewContext put into the request's context.
func (d *Daemon) Handler() http.Handler { return d.handler(d.metrics()) }

// Tune runs the scheduler, the watcher and the loop without serving anything,
// until ctx ends. Where the state is shared it waits for the leadership first, and
// ends with ErrDeposed when it loses that.
func (d *Daemon) Tune(ctx context.Context) error {
	run := d.tune
	if d.seat != nil {
		run = d.lead
	}
	if err := run(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	return nil
}

// tune is what only one controller does.
func (d *Daemon) tune(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	if r, ok := d.driver.(runner); ok {
		group.Go(func() error { return r.Run(gctx) })
	}
	group.Go(func() error {
		return (&watch.Watcher{Source: d.driver, Queue: d.queue, Resync: d.cfg.Resync, Log: d.log}).Run(gctx)
	})
	group.Go(func() error { return d.loop.Run(gctx) })
	group.Go(func() error { return d.pruneLoop(gctx) })
	group.Go(func() error { <-gctx.Done(); d.queue.Close(); return nil })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func (d *Daemon) server(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ConnContext: peer.ConnContext, ReadHeaderTimeout: 5 * time.Second,
		ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug),
	}
}

func closed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// listenUnix takes the socket over from a controller that died, and refuses to
// take it from one that lives.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("make the socket's directory: %w", err)
	}
	if err := freeSocket(ctx, path); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the socket: %w", err)
	}
	// Everyone may connect; the peer credentials decide what each may do.
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(fmt.Errorf("open the socket to users: %w", err), l.Close())
	}
	return l, nil
}

// freeSocket removes a socket at which nobody listens any more, and nothing else.
func freeSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("look at the socket: %w", err)
	}
	if info.Mode().Type() != os.ModeSocket {
		return fmt.Errorf("%s is in the way: not a socket", path)
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		return errors.Join(fmt.Errorf("%w: %s", ErrRunning, path), conn.Close())
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("ask who serves the socket: %w", err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the old socket: %w", err)
	}
	return nil
}

// ErrRunning means that another controller serves this socket.
var ErrRunning = errors.New("another controller is running")

func newRequestID() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
