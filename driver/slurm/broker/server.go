package broker

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"pitchpipe/driver/slurm/broker/ledger"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/slurmctl"
	"pitchpipe/exporter/api/peercred"
)

// ErrConfig is wrapped by errors of New.
var ErrConfig = errors.New("impossible configuration of the broker")

// Defaults of Config.
const (
	DefaultRestarts = 20
	DefaultAhead    = 10 * time.Minute
)

// Stanza is what counts here of a job's accepted stanza.
type Stanza struct {
	Apply  bool   // mode apply: the job may be changed
	Signal string // that asks it to save, with SIG; empty = it cannot be asked
	Exit   int    // status with which it leaves once it saved; 0 = it goes on
	Done   bool   // it says that it saved and goes on, so that it has to be put back

	// Cores and Memory, in bytes of the whole job, are what the owner allows beside what
	// he asked for.
	Cores, Memory Knob
}

// Config is what a Server needs.
type Config struct {
	Socket string // path; its folder is there
	Dir    string // state; made where missing

	// Actor has the rights of an Operator, and so has Runner, which only reads.
	Actor  slurmctl.Actor
	Runner command.Runner

	// Controllers are the uids that are answered, beside root.
	Controllers []uint32

	// Above are the partitions in which a job may get more than its owner asked for.
	Above []string

	// Restarts is in how many attempts one job is asked to save at most, and so how
	// often it is put back into the queue; 0 = DefaultRestarts.
	Restarts int

	// Ahead is how far a start time may be set ahead; 0 = DefaultAhead.
	Ahead time.Duration

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
	ledger ledger.Ledger

	// sizing is held from the look at the limits until a size is set: what one request
	// takes the next one has to see.
	sizing chan struct{}

	complaints peercred.Complaints

	mu   sync.Mutex
	busy map[string]*turn
}

// New checks the configuration and opens the state.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Actor == nil || cfg.Runner == nil || cfg.Script == nil:
		return nil, fmt.Errorf("%w: Actor, Runner and Script are needed", ErrConfig)
	case !filepath.IsAbs(cfg.Socket) || !filepath.IsAbs(cfg.Dir):
		return nil, fmt.Errorf("%w: Socket and Dir are absolute paths", ErrConfig)
	case cfg.Restarts < 0 || cfg.Ahead < 0:
		return nil, fmt.Errorf("%w: less than nothing", ErrConfig)
	}
	if cfg.Restarts == 0 {
		cfg.Restarts = DefaultRestarts
	}
	if cfg.Ahead == 0 {
		cfg.Ahead = DefaultAhead
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.AfterStep == nil {
		cfg.AfterStep = func(string) {}
	}
	l, err := ledger.Open(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return &Server{cfg: cfg, ledger: l, busy: map[string]*turn{}, complaints: peercred.Complaints{Log: cfg.Logger}, sizing: make(chan struct{}, 1)}, nil
}

// turn is one job's, for as long as somebody has it or waits for it.
type turn struct {
	mu    sync.Mutex
	users int
}

// take has the requests about one job wait for each other, and returns the release.
func (s *Server) take(job string) func() {
	s.mu.Lock()
	t, ok := s.busy[job]
	if !ok {
		t = &turn{}
		s.busy[job] = t
	}
	t.users++
	s.mu.Unlock()
	t.mu.Lock()
	return func() {
		t.mu.Unlock()
		s.mu.Lock()
		defer s.mu.Unlock()
		if t.users--; t.users == 0 {
			delete(s.busy, job)
		}
	}
}
