package broker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api/peercred"
)

// ErrConfig is wrapped by errors of New.
var ErrConfig = errors.New("impossible configuration of the broker")

// Defaults of Config.
const (
	DefaultRestarts = 20
	DefaultRaise    = 2 * time.Minute
)

// Ahead is how far a start time may be set ahead.
const Ahead = 10 * time.Minute

// Stanza is what counts here of a job's accepted stanza.
type Stanza struct {
	Apply  bool   // mode apply: the job may be changed
	Signal string // that asks it to save, with SIG; empty = it cannot be asked
	Exit   int    // status with which it leaves once it saved; 0 = it goes on
	Done   bool   // it says that it saved and goes on, so that it must be put back

	// Cores and Memory, in bytes of the whole job, are what the owner allows besides what he
	// asked for.
	Cores, Memory Knob
}

// Config is what a Server needs.
type Config struct {
	Socket string // path; its folder is there
	Dir    string // state; made where missing

	// Actor has the rights of an Operator, and so has Runner, which only reads.
	Actor  slurmctl.Actor
	Runner command.Runner

	// Controllers are the uids that are answered, besides root.
	Controllers []uint32

	// Above are the partitions in which a job may get more than its owner asked for.
	Above []string

	// Restarts is in how many attempts one job is asked to save at most, and so how
	// often it is put back into the queue; 0 = DefaultRestarts.
	Restarts int

	// Advice are the partitions in which the time limit and the nice value of jobs without a
	// stanza may be set, never for more time or a higher priority than their owners asked for.
	Advice []string

	// Raise is how long before a time limit that was lowered here the owner's is given back;
	// 0 = DefaultRaise.
	Raise time.Duration

	// Scripts says that the site has no submission plugin: the script says whether a
	// job has a stanza.
	Scripts bool

	// Script judges the stanza of a batch script.
	Script func(name string, script []byte) (Stanza, error)

	Logger *slog.Logger // default: nothing is logged

	// AfterStep is called after each durable step with its name. Crash tests end the
	// process there; production leaves it nil.
	AfterStep func(step string)
}

// Server is a broker.
type Server struct {
	cfg    Config
	ledger ledger

	// sizing is held from the look at the limits until a size is set: what one request
	// takes the next one has to see.
	sizing *semaphore.Weighted

	complaints peercred.Complaints

	jobs move.Locks // makes the requests about one job wait for each other
}

// New checks the configuration and opens the state.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Actor == nil || cfg.Runner == nil || cfg.Script == nil:
		return nil, fmt.Errorf("%w: Actor, Runner and Script are needed", ErrConfig)
	case !filepath.IsAbs(cfg.Socket) || !filepath.IsAbs(cfg.Dir):
		return nil, fmt.Errorf("%w: Socket and Dir are absolute paths", ErrConfig)
	case cfg.Restarts < 0 || cfg.Raise < 0:
		return nil, fmt.Errorf("%w: less than nothing", ErrConfig)
	}
	cfg.Restarts, cfg.Raise = cmp.Or(cfg.Restarts, DefaultRestarts), cmp.Or(cfg.Raise, DefaultRaise)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.AfterStep == nil {
		cfg.AfterStep = func(string) {}
	}
	l, err := openLedger(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &Server{cfg: cfg, ledger: l, complaints: peercred.Complaints{Log: cfg.Logger}, sizing: semaphore.NewWeighted(1)}, nil
}

// longest bounds one request: some commands of half a minute each.
const longest = 100 * time.Second

// graceful is how long those that began are waited for. The service's unit waits longer.
const graceful = longest + 10*time.Second

// Run serves until the context ends, and then until the requests that began are done.
func (s *Server) Run(ctx context.Context) (err error) {
	lock, err := durable.Lock(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer func() { err = errors.Join(err, durable.Unlock(lock)) }()
	l, err := peercred.Listen(ctx, s.cfg.Socket)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	tidying, stop := context.WithCancel(ctx)
	var housework sync.WaitGroup
	housework.Go(func() { s.every(tidying, tidy, "forgetting jobs that are gone", s.pruned) })
	housework.Go(func() {
		s.every(tidying, max(s.cfg.Raise/8, time.Second), "giving time limits back", s.extend)
	})
	defer housework.Wait()
	defer stop()
	s.cfg.Logger.Info("listening", "socket", s.cfg.Socket)
	mux := http.NewServeMux()
	for verb := range plans() {
		mux.HandleFunc("POST /v1/"+verb, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, verb) })
	}
	// What began is finished: a command that is cut off may have had its effect.
	server := &http.Server{
		Handler:     peercred.Unhurried(mux, maxRequest),
		ConnContext: func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, opened{}, c) },
	}
	// Few of each user are let in, and what is above that is closed at once.
	gate := &peercred.Listener{
		Listener: l, Room: peercred.Room{All: 64, Strangers: 32, Each: 8}, Known: s.controller,
		Full: func(c peercred.Caller) { s.complaints.Add(c.String(), "too many connections at a time") },
	}
	if err := peercred.Serve(ctx, server, gate, graceful); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	return nil
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, verb string) {
	out, err := s.ask(w, r, verb)
	status := http.StatusOK
	if err != nil {
		k := kindOf(err)
		status, out = k.status, response{Kind: k.word, Error: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(out); err != nil {
		s.cfg.Logger.Debug("an answer did not go out", "error", err)
	}
}

func (s *Server) ask(w http.ResponseWriter, r *http.Request, verb string) (response, error) {
	peer, err := s.admit(r.Context())
	if err != nil {
		s.complaints.Add(peercred.Caller{UID: peer}.String(), fmt.Errorf("%s: %w", verb, err))
		w.Header().Set("Connection", "close") // others wait for its place
		return response{}, err
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return response{}, fmt.Errorf("a request above %d bytes, or cut off: %w: %w", maxRequest, driver.ErrInvalid, err)
	}
	var req request
	if err := json.Unmarshal(body, &req); err != nil {
		return response{}, fmt.Errorf("a request that cannot be read: %w: %w", driver.ErrInvalid, err)
	}
	// A client that goes away does not cut off a command that has an effect.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), longest)
	defer cancel()
	if verb == verbScript {
		script, err := s.script(ctx, req.Job)
		return response{Script: script}, err
	}
	return response{}, s.effect(ctx, peer, verb, req)
}

// opened is the key of the connection in the context of its requests.
type opened struct{}

// admit returns the caller, where it is one that may ask.
func (s *Server) admit(ctx context.Context) (uint32, error) {
	who, err := peercred.Of(ctx.Value(opened{}).(net.Conn))
	switch {
	case err != nil:
		err = fmt.Errorf("the caller is unknown: %w: %w", driver.ErrDenied, err)
	case !s.controller(who.UID):
		err = fmt.Errorf("only the site's controller may ask, and uid %d is not the account that it runs under: %w", who.UID, driver.ErrDenied)
	}
	return who.UID, err
}

// controller reports whether requests of this user are answered.
func (s *Server) controller(uid uint32) bool {
	return uid == 0 || slices.Contains(s.cfg.Controllers, uid)
}
