package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/advise"
	"pitchpipe/controller/config"
	"pitchpipe/controller/daemon/nodes"
	"pitchpipe/controller/daemon/peer"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/watch"
	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile/detect"
	"pitchpipe/exporter/api/peercred"
)

// Parts are what a Daemon is built from.
type Parts struct {
	Config config.Config
	Site   *config.SitePolicy
	Driver driver.Driver
	// Exporters are those of the nodes; the caller closes them. Nil = Meter knows all.
	Exporters *nodes.Exporters
	Meter     nodes.Meter
	Log       *slog.Logger

	// Candidate is this controller's part of a pair; one of the two leads. Nil: this one is
	// alone.
	Candidate *Candidate

	// Tick and Step are those of reconcile.Config; 0 = its defaults.
	Tick, Step time.Duration
	// RestartCost is assumed until one was measured; 0 = the loop's default.
	RestartCost time.Duration
	// AfterSave is nil outside of crash tests.
	AfterSave func(*reconcile.Record)
	// AfterSearchSave is the same for searches.
	AfterSearchSave func()
}

// Daemon is a controller. Use New.
type Daemon struct {
	*services
	cfg     config.Config
	records *records
	queue   *watch.Queue
	loop    *reconcile.Loop

	searches *trials.Service
	advisor  *advise.Service          // nil: the scheduler takes no advice
	took     *prometheus.HistogramVec // by the work of searches
	owners   owners
	meter    *nodes.Exporters // nil where they are the caller's
}

// New opens the durable state and connects the services; nothing runs before Run. The
// caller closes the Daemon.
func New(parts Parts) (*Daemon, error) {
	if err := parts.Config.MakeState(); err != nil {
		return nil, err
	}
	d := &Daemon{cfg: parts.Config, queue: watch.NewQueue(), services: &services{
		driver: parts.Driver, nodes: parts.Exporters, site: parts.Site, candidate: parts.Candidate, log: parts.Log,
	}}
	if d.nodes == nil {
		d.meter = nodes.One(parts.Meter, parts.Log)
		d.nodes = d.meter
	}
	if err := d.open(parts.Config.State); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.parse = detect.For(parts.Driver.Name())
	d.took = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "pitchpipe_search_seconds", Help: "Seconds that decisions and rounds of searches took.", Buckets: []float64{.0001, .0003, .001, .003, .01, .03, .1, .3, 1},
	}, []string{"work"})
	d.searches = trials.New(trials.Config{
		Jobs: trialJobs{d}, Store: searchStore{d.store}, Log: parts.Log, Tick: parts.Tick, AfterSave: parts.AfterSearchSave,
		Took: func(w trials.Work, t time.Duration) { d.took.WithLabelValues(string(w)).Observe(t.Seconds()) },
	})
	if d.candidate == nil { // requests may come before Run, and a repeated one does not begin a search again
		if err := d.searches.Load(context.Background()); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	d.advisor = d.newAdvisor()
	services := d.bind()
	services.Share = d.searches.Share
	d.loop = reconcile.New(reconcile.Config{
		Scheduler: parts.Driver, Records: d.records, Queue: d.queue, Services: services, Stages: reconcile.DefaultStages(), Log: parts.Log,
		Tick: parts.Tick, Step: parts.Step, RestartCost: parts.RestartCost, AfterSave: parts.AfterSave,
	})
	return d, nil
}

// open opens the durable state. A controller of a pair has a working copy, in another file
// than a controller that is alone.
func (d *Daemon) open(dir string) (err error) {
	file, options := "knowledge.db", knowledge.Options{}
	if d.candidate != nil {
		file, options.Mirror = "copy.db", d.candidate.replica
	}
	if d.store, err = knowledge.Open(filepath.Join(dir, file), options); err != nil {
		return err
	}
	if d.audit, err = durable.OpenAudit(dir); err != nil {
		return err
	}
	if d.pauses, err = loadPauses(d.store); err != nil {
		return err
	}
	if d.records, err = loadRecords(d.store); err != nil {
		return err
	}
	if err = d.loadModel(); errors.Is(err, knowledge.ErrStale) {
		return nil
	}
	return err
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
	socket, err := peercred.Listen(ctx, d.cfg.Socket)
	if err != nil {
		return err
	}
	group, gctx := errgroup.WithContext(ctx)
	serve := func(h http.Handler, l net.Listener) {
		server := &http.Server{Handler: h, ConnContext: peer.ConnContext, ErrorLog: slog.NewLogLogger(d.log.Handler(), slog.LevelDebug)}
		group.Go(func() error { return peercred.Serve(gctx, server, l, 2*time.Second) })
	}
	if d.cfg.Listen != "" {
		tcp, err := d.listenMetrics(ctx)
		if err != nil {
			return errors.Join(err, socket.Close())
		}
		mux := http.NewServeMux()
		mux.Handle("GET /metrics", metrics)
		serve(mux, d.limitMetrics(tcp))
	}
	serve(peercred.Unhurried(d.handler(metrics), maxFile), d.limitSocket(socket))
	group.Go(func() error { return d.owners.follow(gctx, d.ownersNow) })
	group.Go(func() error { return d.Tune(gctx) })
	d.log.Info("controller ready", "socket", d.cfg.Socket, "state", d.cfg.State, "driver", d.driver.Name())
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// listenMetrics opens the address of /metrics. Several controllers run on one machine, each for
// its user: where the address is the default and taken, all but a site's take a free port.
func (d *Daemon) listenMetrics(ctx context.Context) (net.Listener, error) {
	var lc net.ListenConfig
	tcp, err := lc.Listen(ctx, "tcp", d.cfg.Listen)
	if !errors.Is(err, syscall.EADDRINUSE) {
		return tcp, err
	}
	site := d.cfg.Driver == "slurm" && d.cfg.Slurm.Mode == "site"
	if d.cfg.Given["listen"] == "" && !site {
		if tcp, err = lc.Listen(ctx, "tcp", "127.0.0.1:0"); err == nil {
			d.log.Info("the usual port of /metrics is taken, so it is on a free one", "usual", d.cfg.Listen, "listen", tcp.Addr().String())
		}
		return tcp, err
	}
	return nil, fmt.Errorf("%w: listen %s for /metrics is taken, perhaps by another controller: name another port (--listen 127.0.0.1:PORT, or the key listen), or none (--listen=)",
		config.ErrInvalid, d.cfg.Listen)
}

func (d *Daemon) metrics() http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collector{d}, d.took)
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
}

// Handler is the API without a socket, for a process that serves itself. The caller is the
// one that peer.NewContext put into the request's context.
func (d *Daemon) Handler() http.Handler { return d.handler(d.metrics()) }

// Tune runs the scheduler, the watcher and the loop without serving anything,
// until ctx ends. A controller of a pair waits for the leadership first, and ends with
// ErrDeposed when it loses it.
func (d *Daemon) Tune(ctx context.Context) error {
	run := d.tune
	if d.candidate != nil {
		run = d.lead
	}
	if err := run(ctx); err != nil && (ctx.Err() == nil || !errors.Is(err, context.Canceled)) {
		return err
	}
	return nil
}

// tune runs what only the leader does.
func (d *Daemon) tune(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	if r, ok := d.driver.(interface{ Run(context.Context) error }); ok { // as the embedded scheduler does
		group.Go(func() error { return r.Run(gctx) })
	}
	group.Go(func() error {
		return (&watch.Watcher{Source: d.driver, Queue: d.queue, Resync: d.cfg.Resync, Log: d.log}).Run(gctx)
	})
	group.Go(func() error { return d.loop.Run(gctx) })
	group.Go(func() error { return d.searches.Run(gctx) })
	if d.advisor != nil {
		group.Go(func() error { return d.advisor.Run(gctx) })
	}
	group.Go(func() error { return d.pruneLoop(gctx) })
	group.Go(func() error { <-gctx.Done(); d.queue.Close(); return nil })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

func newRequestID() string {
	return strings.ToLower(rand.Text())
}
