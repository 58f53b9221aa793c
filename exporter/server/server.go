package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/peercred"
	"pitchpipe/exporter/window"
)

// Marker accepts progress marks; *sampler.Sampler is the real one.
type Marker interface {
	Mark(ctx context.Context, who peercred.Caller, report api.Report) error
	MarkFor(ctx context.Context, manager, id string, attempt int, report api.Report) error
}

// Config says where to listen.
type Config struct {
	Socket  string       // Unix socket, required
	Metrics string       // loopback address for /metrics, empty = none
	Logger  *slog.Logger // default: none
	// Blind says why the kernel's word on who reports cannot be understood here, and
	// refuses all reports: a number that means another process would credit them to
	// its job. Empty = it can.
	Blind string
	// Readers are the users beside root who may see the jobs of everybody.
	Readers []uint32
	// ShowJobs shows on /metrics the jobs of everybody to everybody on this machine;
	// else each sees those that he sees on the socket.
	ShowJobs bool
	// Remote serves callers on other machines; without an address there are none.
	Remote Remote
	// Node returns the node as it is now; nil = it stays as it was.
	Node func() api.Node
}

// Server serves one node.
type Server struct {
	cfg     Config
	log     *slog.Logger
	node    api.Node
	store   *window.Store
	marker  Marker
	metrics http.Handler
	rates   *rates
	remote  *remote // nil = it serves this machine alone
}

// ErrAddress means that an address is not one to serve metrics on.
var ErrAddress = errors.New("metrics address")

// New builds a server. It fails with ErrAddress where cfg.Metrics is not loopback:
// whoever can reach the address reads the node's energy, and the kernel says who
// he is on this machine alone; and with ErrRemote where cfg.Remote
// has an address and lacks what makes that safe.
func New(cfg Config, node api.Node, store *window.Store, marker Marker, metrics http.Handler) (*Server, error) {
	if cfg.Socket == "" {
		return nil, errors.New("server: no socket to listen on")
	}
	if cfg.Metrics != "" {
		host, _, err := net.SplitHostPort(cfg.Metrics)
		if err != nil {
			return nil, fmt.Errorf("%w %q: %w", ErrAddress, cfg.Metrics, err)
		}
		ip, err := netip.ParseAddr(host)
		if host != "localhost" && (err != nil || !ip.IsLoopback()) {
			return nil, fmt.Errorf("%w %q: want a loopback address such as 127.0.0.1:9820, or none: beyond it scrape the address of the API, which asks for a certificate", ErrAddress, cfg.Metrics)
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{cfg: cfg, log: cfg.Logger, node: node, store: store, marker: marker, metrics: metrics, rates: &rates{users: map[peercred.Share]*rate{}}}
	if cfg.Remote.asked() {
		var err error
		if s.remote, err = s.newRemote(cfg.Remote); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Run serves until ctx ends and then lets open requests finish for two seconds.
func (s *Server) Run(ctx context.Context) error {
	socket, err := peercred.Listen(ctx, s.cfg.Socket)
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.serve(ctx, s.Handler(), s.fair(socket)) })
	s.log.Info("listening", "socket", s.cfg.Socket)
	if s.remote != nil {
		group.Go(func() error { return s.remote.run(ctx) })
	}
	if s.cfg.Metrics != "" {
		var lc net.ListenConfig
		tcp, err := lc.Listen(ctx, "tcp", s.cfg.Metrics)
		if err != nil {
			// The jobs' samples matter more than the scrape.
			s.log.Error("metrics are on the socket only", "address", s.cfg.Metrics, "err", err)
			return group.Wait()
		}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", s.scrape)
		group.Go(func() error { return s.serve(ctx, s.rated(mux), s.fair(peercred.Identify(tcp))) })
		s.log.Info("listening", "address", tcp.Addr().String())
	}
	return group.Wait()
}

// graceful is how long open requests may take to finish.
const graceful = 2 * time.Second

func (s *Server) serve(ctx context.Context, h http.Handler, l net.Listener) error {
	return peercred.Serve(ctx, &http.Server{Handler: h, ConnContext: s.withPeer}, l, graceful)
}

// Handler answers requests whose context carries a peer.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	s.register(mux)
	mux.Handle("POST "+api.PathProgress, s.handle(s.progress))
	return s.rated(mux)
}
