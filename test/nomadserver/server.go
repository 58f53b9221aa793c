package nomadserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/test/nomadserver/events"
	"pitchpipe/test/nomadserver/state"
)

// Server is a running cluster.
type Server struct {
	opts   Options
	ownDir bool
	ports  ports
	store  *state.Store
	events *events.Broker
	node   *node
	queue  *queue

	ctx    context.Context //nolint:containedctx // the life of the cluster, which ends with Close
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu         sync.Mutex
	http       *http.Server
	addr       string // host:port
	served     chan struct{}
	namespaces map[string]api.Namespace
	config     api.SchedulerConfiguration
	configAt   uint64
}

// Start brings a cluster up on a free port of loopback. It lives until Close; ctx
// bounds only the start.
func Start(ctx context.Context, opts Options) (*Server, error) {
	opts = opts.withDefaults()
	s := &Server{opts: opts, events: events.New(opts.EventBuffer), configAt: 1}
	if opts.Dir == "" {
		dir, err := os.MkdirTemp("", "nomadserver-")
		if err != nil {
			return nil, fmt.Errorf("a folder for allocations: %w", err)
		}
		s.opts.Dir, s.ownDir = dir, true
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.config = defaultConfig()
	s.config.MemoryOversubscriptionEnabled = opts.Oversubscribe
	s.namespaces = map[string]api.Namespace{"default": {Name: "default", Description: "Default shared namespace", CreateIndex: 1, ModifyIndex: 1}}
	s.queue = newQueue()
	s.node = newNode(s)
	s.store = state.New(s.committed)
	s.ports = s.wire()
	if err := s.listen(ctx, "127.0.0.1:0"); err != nil {
		s.cancel()
		return nil, errors.Join(err, s.cleanUp())
	}
	s.work.Go(s.evaluate)
	s.work.Go(s.launchPeriodic)
	return s, nil
}

// Addr is http://127.0.0.1:PORT.
func (s *Server) Addr() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "http://" + s.addr
}

// Restart closes the listener and every connection, and listens again on the same
// port. What the cluster knows stays, and running tasks go on.
func (s *Server) Restart(ctx context.Context) error {
	s.Down()
	return s.Up(ctx)
}

// Down closes the listener and every connection; the cluster goes on.
func (s *Server) Down() { s.cut() }

// Up listens again on the port of before.
func (s *Server) Up(ctx context.Context) error {
	s.mu.Lock()
	addr := s.addr
	s.mu.Unlock()
	var err error
	for range 100 { // the port may be taken for a moment
		if err = s.listen(ctx, addr); err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	return err
}

// CutStreams ends every event stream, without an error and without a last line.
func (s *Server) CutStreams() { s.events.Cut() }

// Close kills what runs and frees everything.
func (s *Server) Close() error {
	s.cancel()
	s.cut()
	s.node.wait()
	s.work.Wait()
	return s.cleanUp()
}

func (s *Server) cleanUp() error {
	if !s.ownDir {
		return nil
	}
	return os.RemoveAll(s.opts.Dir)
}

func (s *Server) listen(ctx context.Context, addr string) error {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return fmt.Errorf("listening on %s: %w", addr, err)
	}
	srv := &http.Server{Handler: s.handler(), ReadHeaderTimeout: time.Minute}
	served := make(chan struct{})
	s.mu.Lock()
	s.http, s.addr, s.served = srv, l.Addr().String(), served
	s.mu.Unlock()
	go func() {
		defer close(served)
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.opts.Logger.Error("serving ended", "error", err)
		}
	}()
	return nil
}

// cut closes the listener and every connection.
func (s *Server) cut() {
	s.mu.Lock()
	srv, served := s.http, s.served
	s.mu.Unlock()
	if err := srv.Close(); err != nil {
		s.opts.Logger.Debug("closing the listener", "error", err)
	}
	<-served
}

// committed tells everybody about a transaction.
func (s *Server) committed(c state.Commit) {
	for _, b := range eventsOf(c) {
		s.events.Publish(b)
	}
	s.node.see(c)
	s.queue.see(c)
}
