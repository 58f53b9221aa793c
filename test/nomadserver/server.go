package nomadserver

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/cluster"
)

// Options say what the cluster is like; zero values have a meaning.
type Options struct {
	Cores         int          // of the node, 0 = 4; each counts as 2600 MHz
	MemoryMB      int          // of the node, 0 = 8192
	ACL           bool         // every request needs a token
	Oversubscribe bool         // memory_max counts
	Logger        *slog.Logger // of what goes wrong; nil = silent
}

const mhzPerCore = 2600

// Server is a running cluster.
type Server struct {
	opts      Options
	dir       string // of allocations
	store     *cluster.Store
	authority *authority // nil: everything is allowed
	node      *node
	queue     *queue

	ctx    context.Context //nolint:containedctx // the life of the cluster, which ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	http       *http.Server
	addr       string // host:port
	namespaces map[string]struct{}
}

// Start brings a cluster up on a free port of loopback. It lives until Close; ctx bounds
// only the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	s, err := newServer(ctx, opts)
	if err != nil {
		return nil, err
	}
	if err := s.listen(ctx, "127.0.0.1:0"); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// newServer is a cluster that does not listen yet.
func newServer(ctx context.Context, opts Options) (*Server, error) {
	opts.Cores, opts.MemoryMB = cmp.Or(opts.Cores, 4), cmp.Or(opts.MemoryMB, 8192)
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	dir, err := os.MkdirTemp("", "nomadserver-")
	if err != nil {
		return nil, fmt.Errorf("a folder for allocations: %w", err)
	}
	s := &Server{opts: opts, dir: dir, queue: &queue{news: make(chan struct{}, 1)}, namespaces: map[string]struct{}{"default": {}}}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.node = newNode(s)
	s.store = cluster.NewStore(func(allocs []*api.Allocation, evals []*api.Evaluation) {
		s.node.follow(allocs)
		s.queue.follow(evals)
	})
	if opts.ACL {
		s.authority = &authority{policies: map[string]*policy{}, tokens: map[string][]string{}}
	}
	s.work.Go(s.evaluate)
	return s, nil
}

// Addr is http://127.0.0.1:PORT.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Down closes the listener and every connection; the cluster goes on.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.http == nil {
		return
	}
	if err := s.http.Close(); err != nil {
		s.opts.Logger.Debug("closing the listener", "error", err)
	}
}

// Up listens again on the port of before.
func (s *Server) Up(ctx context.Context) error {
	s.mu.Lock()
	addr := s.addr
	s.mu.Unlock()
	for tries := 100; ; tries-- { // the port may be taken for a moment
		err := s.listen(ctx, addr)
		if err == nil || tries == 0 || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close kills what runs and frees everything.
func (s *Server) Close() error {
	s.cancel()
	s.Down()
	s.node.work.Wait()
	s.work.Wait()
	return os.RemoveAll(s.dir)
}

func (s *Server) listen(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	srv := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	s.mu.Lock()
	s.http, s.addr = srv, l.Addr().String()
	s.mu.Unlock()
	s.work.Go(func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.opts.Logger.Error("serving ended", "error", err)
		}
	})
	return nil
}

// errNothing ends a transaction that has nothing to write.
var errNothing = errors.New("nothing to write")

// write runs a transaction of the cluster's own.
func (s *Server) write(f func(*cluster.Tx) error) {
	if _, err := s.store.Write(f); err != nil && !errors.Is(err, errNothing) {
		s.opts.Logger.Error("a transaction failed", "error", err)
	}
}

// after runs f once, unless the cluster ends before.
func (s *Server) after(d time.Duration, f func()) {
	timer := time.AfterFunc(d, f)
	context.AfterFunc(s.ctx, func() { timer.Stop() })
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
