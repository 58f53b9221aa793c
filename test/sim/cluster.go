package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// NodeSpec is one simulated machine.
type NodeSpec struct {
	Name        string
	Cores       int
	MemoryBytes int64
	Kind        string // machine kind; empty = one for each number of cores
}

// Config is how a cluster is made. Its zero value is a useful cluster.
type Config struct {
	// Nodes are the machines, in the order in which they are filled; nil = one
	// node of 16 cores and 64 GiB.
	Nodes []NodeSpec

	// Faults is asked before each operation. The caller gets its error; the operation is
	// done all the same where that is driver.ErrUnknown, and is not done where it is
	// anything else. For OpStart job is empty. It is called without a lock, from many
	// goroutines.
	Faults func(op string, job driver.JobID) error

	// Recorded is asked before each epoch what it took when it was measured; where it
	// knows that, its answer counts in place of the #SIM lines. It is called with the
	// cluster's lock and must not call the cluster.
	Recorded func(Work) (Measured, bool)

	// AfterStep is called at the points of package move, so that a test can crash there.
	AfterStep func(point string)

	// Seed changes all noise at once.
	Seed int64

	// Interval is the time between two samples; 0 = 1 s.
	Interval time.Duration

	// EnergySource is where the nodes' joules come from, in the words of the
	// exporter; empty = modelled.
	EnergySource string
}

// Work is an epoch that begins.
type Work struct {
	Job            string // its name
	Attempt, Epoch int
	Cores          int
	Env            map[string]string // as the attempt sees it
}

// Measured is what an epoch took, and what the job says at its end.
type Measured struct {
	Length        time.Duration
	Joules        float64
	Loss, Quality *float64 // nil = as the #SIM lines have it
}

// Cluster is a simulated cluster: a driver.Driver, and what an exporter on its
// nodes would say. Make one with New. All methods are safe for concurrent use.
type Cluster struct {
	cfg      Config
	moves    move.Machine
	watchers driver.Watchers

	mu        sync.Mutex
	now       time.Time // the instant that everything below is at
	agenda    []event   // by time
	timer     *time.Timer
	closed    bool
	nodes     []*node
	jobs      []*job // by submission
	byRequest map[driver.RequestID]*job
	queue     []*job // pending, first come first
}

// node is a machine, what is free on it, and its load: the counters nodeBusy and nodeSteal.
type node struct {
	spec      NodeSpec
	free      driver.Room
	busy      float64 // cores that work now, in all jobs
	contended int     // jobs that others disturb now
	load      meter
}

// event is something that happens at an instant that is known beforehand.
type event struct {
	at   time.Time
	fire func()
}

// New makes a cluster without jobs. It starts nothing: the first timer is set
// by the first Start, the first goroutine by Watch.
func New(cfg Config) (*Cluster, error) {
	if len(cfg.Nodes) == 0 {
		cfg.Nodes = []NodeSpec{{Name: "node-1", Cores: 16, MemoryBytes: 64 << 30}}
	}
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	if cfg.EnergySource == "" {
		cfg.EnergySource = "modelled"
	}
	c := &Cluster{cfg: cfg, byRequest: map[driver.RequestID]*job{}}
	c.moves.AfterStep = cfg.AfterStep
	if cfg.Faults != nil {
		c.watchers.Broken = func(id driver.JobID) bool { return cfg.Faults(OpEvent, id) != nil }
	}
	for _, spec := range cfg.Nodes {
		if spec.Name == "" || spec.Cores < 1 || spec.MemoryBytes < 1 {
			return nil, fmt.Errorf("simulated cluster: node %+v: want a name, cores and memory", spec)
		}
		if spec.Kind == "" {
			spec.Kind = fmt.Sprintf("sim-%dc", spec.Cores)
		}
		c.nodes = append(c.nodes, &node{spec: spec, free: driver.Room{Cores: spec.Cores, Memory: spec.MemoryBytes}})
	}
	return c, nil
}

// Close ends all watches and lets no more time pass for the jobs. Every later
// call is driver.ErrTransient. It returns when all goroutines of the cluster are
// gone; closing twice does nothing.
func (c *Cluster) Close() {
	c.mu.Lock()
	c.closed = true
	if c.timer != nil {
		c.timer.Stop()
	}
	c.mu.Unlock()
	c.watchers.Close()
}

// at puts f on the agenda, after what happens at the same instant. The caller holds the lock.
func (c *Cluster) at(when time.Time, f func()) {
	i, _ := slices.BinarySearchFunc(c.agenda, when, func(e event, t time.Time) int {
		if e.at.After(t) {
			return 1
		}
		return -1
	})
	c.agenda = slices.Insert(c.agenda, i, event{when, f})
}

// after puts f on the agenda, d after the instant that the cluster is at.
func (c *Cluster) after(d time.Duration, f func()) { c.at(c.now.Add(d), f) }

// enter takes the lock and lets everything happen that was due by now, each
// event at its own instant: what a caller sees never depends on when it looks.
func (c *Cluster) enter() {
	c.mu.Lock()
	now := time.Now()
	for !c.closed && len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
		e := c.agenda[0]
		c.agenda = slices.Delete(c.agenda, 0, 1)
		if e.at.After(c.now) {
			c.now = e.at
		}
		e.fire()
	}
	if now.After(c.now) {
		c.now = now
	}
}

// leave sets the timer for the next event, so that watchers hear of it although no one asks,
// and gives the lock back.
func (c *Cluster) leave() {
	defer c.mu.Unlock()
	if c.closed || len(c.agenda) == 0 {
		return
	}
	d := time.Until(c.agenda[0].at)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, func() {
			c.enter()
			c.leave()
		})
		return
	}
	c.timer.Reset(d)
}

// ErrNotTaken is for Config.Faults: a request that was lost on its way. The
// caller sees driver.ErrUnknown, and nothing was done. A plain driver.ErrUnknown
// is the other half of that uncertainty: it was done, and the answer was lost.
var ErrNotTaken = errors.New("request lost on its way")

// The operations that Config.Faults is asked about. OpEvent is the delivery of
// one event to a watcher: an error breaks that stream.
const (
	OpStart   = "start"
	OpAdvance = "advance"
	OpRelease = "release"
	OpCheck   = "check"
	OpOutlook = "outlook"
	OpWatch   = "watch"
	OpEvent   = "event"
	OpGet     = "get"
	OpList    = "list"
	OpStop    = "stop"
	OpLogs    = "logs"
	OpWindow  = "window"
	OpNode    = "node"
)

// do runs one operation under the lock, at the present instant, with the faults
// that the configuration wants.
func do[T any](ctx context.Context, c *Cluster, op string, id driver.JobID, f func() (T, error)) (out T, err error) {
	what := op
	if id != "" {
		what += " " + string(id)
	}
	if err := ctx.Err(); err != nil {
		return out, fmt.Errorf("%s: %w", what, err)
	}
	var fault error
	if c.cfg.Faults != nil {
		fault = c.cfg.Faults(op, id)
	}
	switch {
	case errors.Is(fault, ErrNotTaken):
		return out, fmt.Errorf("%s: %w: %w", what, driver.ErrUnknown, fault)
	case fault != nil && !errors.Is(fault, driver.ErrUnknown):
		return out, fmt.Errorf("%s: %w", what, fault)
	}
	c.enter()
	defer c.leave()
	if c.closed {
		return out, fmt.Errorf("%s: the cluster was closed: %w", what, driver.ErrTransient)
	}
	result, err := f()
	if err == nil {
		err = fault
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", what, err)
	}
	return result, nil
}

// about is do of an operation about one job.
func about[T any](ctx context.Context, c *Cluster, op string, id driver.JobID, f func(*job) (T, error)) (T, error) {
	return do(ctx, c, op, id, func() (out T, err error) {
		j, err := c.find(id)
		if err != nil {
			return out, err
		}
		return f(j)
	})
}
