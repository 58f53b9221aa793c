package nodes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/certs"
)

// Meter is one exporter, or a simulated one.
type Meter interface {
	Node(ctx context.Context) (api.Node, error)
	Window(ctx context.Context, job string, attempt int, after uint64) (api.Window, error)
	ReportFor(ctx context.Context, job string, attempt int, r api.Report) error
	SetBudget(ctx context.Context, job string, attempt int, b api.Budget) error
}

// Config says where the exporters are.
type Config struct {
	// Pattern has {node} where the name of a node belongs: unix:/PATH/{node}.sock or
	// https://{node}:PORT. Empty = the exporter at Socket knows everything.
	Pattern string
	Socket  string // empty = the exporter's default
	// Find replaces Pattern. The exporters that it finds are reached over TLS, and each
	// needs a certificate for the name of its node.
	Find Finder
	// Cert, Key and CA are files: the controller's certificate and its key, and the
	// authority of the nodes' certificates. Only https and Find need them.
	Cert, Key, CA string
	Log           *slog.Logger // default: none
}

// Exporters are those of a cluster. It is safe for concurrent use. Use New or One.
type Exporters struct {
	cfg  Config
	log  *slog.Logger
	own  *certs.Store                             // nil where it is not needed
	dir  *directory                               // nil where nothing has to be found
	open func(node string) (Meter, func(), error) // makes a client and what closes it
	*background

	mu     sync.Mutex
	known  map[string]*exporter
	tries  int // under way
	swept  time.Time
	kinds  map[kind]time.Time // machines that were described, and when last
	closed bool
}

// New checks the configuration and reads the certificates; nothing is dialled.
func New(cfg Config) (*Exporters, error) {
	e := start(cfg)
	if cfg.Pattern != "" && cfg.Find != nil {
		return nil, fmt.Errorf("exporter.nodes is %q beside exporter.discovery: want one of them", cfg.Pattern)
	}
	if e.byTLS() {
		var err error
		if e.own, err = certs.Open(certs.Files{Cert: cfg.Cert, Key: cfg.Key, CA: cfg.CA}, e.log); err != nil {
			where := cfg.Pattern
			if cfg.Find != nil {
				where = cfg.Find.String()
			}
			return nil, fmt.Errorf("%s: %w", where, err)
		}
	}
	if cfg.Find != nil {
		e.dir = newDirectory(cfg.Find, e.log)
	}
	e.open = e.dial
	return e, nil
}

// One is a cluster whose every job is known to one meter.
func One(m Meter, log *slog.Logger) *Exporters {
	e := start(Config{Log: log})
	e.open = func(string) (Meter, func(), error) { return m, func() {}, nil }
	return e
}

func start(cfg Config) *Exporters {
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	return &Exporters{background: newBackground(), cfg: cfg, log: cfg.Log, known: map[string]*exporter{}, kinds: map[kind]time.Time{}}
}

// Close ends what is under way and drops the connections.
func (e *Exporters) Close() {
	e.mu.Lock()
	e.closed = true
	for _, x := range e.known {
		x.close()
	}
	e.mu.Unlock()
	if e.dir != nil {
		e.dir.close()
	}
	e.close()
}

// many reports whether there is an exporter on each node.
func (e *Exporters) many() bool { return e.cfg.Pattern != "" || e.cfg.Find != nil }

func (e *Exporters) byTLS() bool {
	return e.cfg.Find != nil || strings.HasPrefix(e.cfg.Pattern, "https:")
}

const factsAge = time.Minute

// Node describes the machine with that name, from an answer of at most a minute ago. A job
// that waits has no node yet: where all machines that were described lately are of one
// kind, Node returns that kind, else ErrNode.
func (e *Exporters) Node(ctx context.Context, node string) (api.Node, error) {
	if node == "" && e.many() {
		return e.common()
	}
	e.mu.Lock()
	x := e.known[e.key(node)]
	if x != nil && x.about.Cores != 0 && time.Since(x.aboutAt) < factsAge {
		defer e.mu.Unlock()
		x.used = time.Now()
		return x.about, nil
	}
	e.mu.Unlock()
	var about api.Node
	err := e.ask(ctx, node, func(ctx context.Context, m Meter) (err error) {
		about, err = m.Node(ctx)
		return err
	})
	if err != nil {
		return api.Node{}, fmt.Errorf("ask the exporter about the node: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if x := e.known[e.key(node)]; x != nil {
		x.about, x.aboutAt = about, now
	}
	e.kinds[kind{about.MachineKind, about.Cores, about.EnergySource}] = now
	return about, nil
}

// Window are the samples of one attempt of a job that runs, or ran, on a node: see
// api.Client.Window.
func (e *Exporters) Window(ctx context.Context, node, job string, attempt int, after uint64) (w api.Window, err error) {
	err = e.ask(ctx, node, func(ctx context.Context, m Meter) (err error) {
		w, err = m.Window(ctx, job, attempt, after)
		return err
	})
	return w, err
}

// Saves are the checkpoints that an attempt reported to its node's exporter.
func (e *Exporters) Saves(ctx context.Context, node, job string, attempt int) (api.Saves, error) {
	// No sample has that number: the answer has only the job.
	w, err := e.Window(ctx, node, job, attempt, ^uint64(0))
	return api.Saves{Count: w.Job.Saves, Last: w.Job.Saved, Now: w.Now}, err
}

// Report reports on a job's behalf that an epoch ended or that it saved. The job is
// "<manager>/<id>", such as nomad/ALLOCATION.TASK, and attempt 0 is the newest.
// api.ErrNotFound: the exporter does not know the job, as in its first seconds;
// api.ErrDenied: the controller is not one of its readers; api.ErrUnavailable: it does not
// answer.
func (e *Exporters) Report(ctx context.Context, node, job string, attempt int, r api.Report) error {
	return e.ask(ctx, node, func(ctx context.Context, m Meter) error { return m.ReportFor(ctx, job, attempt, r) })
}

// SetBudget sends the budget of a job, named as for Report: see api.Client.SetBudget.
func (e *Exporters) SetBudget(ctx context.Context, node, job string, attempt int, b api.Budget) error {
	return e.ask(ctx, node, func(ctx context.Context, m Meter) error { return m.SetBudget(ctx, job, attempt, b) })
}

// ask calls a node's exporter, with a time limit, unless it is silent.
func (e *Exporters) ask(ctx context.Context, node string, call func(context.Context, Meter) error) error {
	x, err := e.enter(node)
	if err != nil {
		return err
	}
	counts := false
	defer func() { e.leave(x, err, counts) }() // also where the call panics
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = call(limited, x.meter)
	counts = ctx.Err() == nil // a call that its caller cancelled says nothing about the exporter
	if err != nil && x.name != "" {
		return fmt.Errorf("exporter of node %s: %w", x.name, err)
	}
	return err
}

// kind decides whether what was learned on one machine counts on another.
type kind struct {
	machine string
	cores   int
	energy  string
}

const kindsAge = 24 * time.Hour

func (e *Exporters) common() (api.Node, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.kinds, func(_ kind, last time.Time) bool { return time.Since(last) > kindsAge })
	for k := range e.kinds {
		if len(e.kinds) == 1 {
			return api.Node{MachineKind: k.machine, Cores: k.cores, EnergySource: k.energy}, nil
		}
	}
	return api.Node{}, fmt.Errorf("%w: the job has no node yet, and %d kinds of machines are known", ErrNode, len(e.kinds))
}

func (e *Exporters) key(node string) string {
	if !e.many() {
		return ""
	}
	// Names of hosts ignore case, paths of sockets do not.
	if e.byTLS() {
		return strings.ToLower(node)
	}
	return node
}

var errClosed = errors.New("the exporters are not asked any more")
