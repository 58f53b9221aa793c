package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/prometheus/exporter-toolkit/web"
	"golang.org/x/sync/errgroup"
	"golang.org/x/time/rate"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/window"
)

// Marker accepts progress marks; *sampler.Sampler is the real one.
type Marker interface {
	Mark(ctx context.Context, who peercred.Caller, report api.Report) error
	MarkFor(ctx context.Context, name string, attempt int, report api.Report) error
}

// Config says where to listen.
type Config struct {
	Socket  string // Unix socket, required
	Metrics string // address for /metrics, empty = none; loopback where WebConfig is empty
	// WebConfig is a file of prometheus/exporter-toolkit with TLS and basic auth for that
	// address; empty = neither. Callers from other machines see the node, and the jobs only
	// where ShowJobs is set.
	WebConfig string
	Logger    *slog.Logger // default: none
	// Blind says why the kernel's word on who reports cannot be understood here, and
	// refuses all reports: a number that means another process would credit them to
	// its job. Empty = it can.
	Blind string
	// Readers are the users besides root who may see the jobs of all users.
	Readers []uint32
	// ShowJobs shows on /metrics the jobs of all users to every user of this machine;
	// else each sees those that he sees on the socket.
	ShowJobs bool
	// Remote serves callers on other machines; without an address there are none.
	Remote Remote
}

// Server serves one node.
type Server struct {
	cfg     Config
	log     *slog.Logger
	node    func() api.Node
	store   *window.Store
	marker  Marker
	metrics http.Handler
	rates   *rates
	remote  *remote // nil = it serves this machine alone
}

// ErrAddress means that an address is not one to serve metrics on.
var ErrAddress = errors.New("--web.listen-address")

// New builds a server. It fails with ErrAddress where cfg.Metrics is not loopback and has no
// web config: every caller who reaches the address reads the node's energy, and the kernel
// knows callers on this machine alone; and with ErrRemote where cfg.Remote has an address
// and lacks what makes that safe.
func New(cfg Config, node func() api.Node, store *window.Store, marker Marker, metrics http.Handler) (*Server, error) {
	if err := cfg.checkMetrics(); err != nil {
		return nil, err
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Server{cfg: cfg, log: cfg.Logger, node: node, store: store, marker: marker, metrics: metrics, rates: &rates{users: map[asker]*rate.Limiter{}}}
	if r := cfg.Remote; r.Address != "" || r.Certs != (certs.Files{}) || len(r.Clients) > 0 || len(r.Scrapers) > 0 {
		var err error
		if s.remote, err = s.newRemote(); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (c Config) checkMetrics() error {
	if c.Metrics == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Metrics)
	if err != nil {
		return fmt.Errorf("%w=%s: want HOST:PORT: %w", ErrAddress, c.Metrics, err)
	}
	if c.WebConfig != "" {
		if err := web.Validate(c.WebConfig); err != nil {
			return fmt.Errorf("%w=%s: --web.config.file=%s: %w", ErrAddress, c.Metrics, c.WebConfig, err)
		}
		return nil
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return fmt.Errorf("%w=%s: want a loopback address such as 127.0.0.1:9820, or a web config with TLS: beyond loopback scrape the address of the API, which asks for a certificate", ErrAddress, c.Metrics)
	}
	return nil
}

// Run serves until ctx ends and then lets open requests finish for two seconds.
func (s *Server) Run(ctx context.Context) error {
	socket, err := peercred.Listen(ctx, s.cfg.Socket)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return peercred.Serve(ctx, &http.Server{Handler: s.Handler(), ConnContext: s.withPeer}, s.fair(socket), graceful)
	})
	s.log.Info("listening", "socket", s.cfg.Socket)
	if s.remote != nil {
		group.Go(func() error { return s.listen(ctx, s.cfg.Remote.Address, "jobs over TLS", s.remote.serve) })
	}
	if s.cfg.Metrics != "" {
		group.Go(func() error { return s.listen(ctx, s.cfg.Metrics, "metrics", s.serveMetrics) })
	}
	return group.Wait()
}

// bindAgain is the wait before an address that cannot be listened on is tried again: at boot
// it may not be there yet.
const bindAgain = 5 * time.Second

// listen serves an address, and tries again where that cannot be: the jobs' samples matter more.
func (s *Server) listen(ctx context.Context, address, what string, serve func(context.Context, net.Listener) error) error {
	var lc net.ListenConfig
	for failed := ""; ; {
		l, err := lc.Listen(ctx, "tcp", address)
		if err == nil {
			s.log.Info("listening", "address", l.Addr().String(), "serves", what)
			return serve(ctx, l)
		}
		if text := err.Error(); text != failed && ctx.Err() == nil {
			failed = text
			s.log.Error("an address is not served; the socket is", "address", address, "again_in", bindAgain, "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(bindAgain):
		}
	}
}

func (s *Server) serveMetrics(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", s.scrape)
	srv := &http.Server{Handler: s.rated(mux), ConnContext: s.withPeer}
	return peercred.ServeBy(ctx, srv, s.fair(l), graceful, func(l net.Listener) error {
		return web.Serve(l, srv, &web.FlagConfig{WebConfigFile: &s.cfg.WebConfig}, s.log)
	})
}

// graceful is how long open requests may take to finish.
const graceful = 2 * time.Second

// Handler answers requests whose context carries a peer.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.register(mux)
	mux.Handle("POST "+api.PathProgress, s.handle(s.progress))
	return s.rated(http.MaxBytesHandler(mux, maxBody))
}
