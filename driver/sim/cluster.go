package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/jobfile/detect"
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

	// Parse reads the part of a job file that real schedulers read too; nil =
	// driver/jobfile/detect.
	Parse func(filename string, src []byte, vars map[string]string) (*jobfile.Job, error)

	// Faults is asked before each operation. An error of it is what the caller
	// gets; the operation is done all the same where the error is
	// driver.ErrUnknown, and is not done where it is anything else. For OpStart job
	// is empty. It is called without a lock, from many goroutines.
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

	// Ring is how many samples of an attempt are kept; 0 = 4096.
	Ring int

	// EnergySource is where the nodes' joules come from, in the words of the
	// exporter; empty = modelled.
	EnergySource string

	// Denied lists columns that the nodes' exporter may not read.
	Denied []string
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
	cfg Config

	moves     move.Machine
	mu        sync.Mutex
	now       time.Time // the instant that everything below is at
	agenda    agenda
	seq       uint64
	timer     *time.Timer
	closed    bool
	nodes     []*node
	jobs      []*job // by submission
	byRequest map[driver.RequestID]*job
	queue     []*job // pending, first come first

	watchers map[*watcher]struct{}
	streams  sync.WaitGroup
	quit     chan struct{}
}

// New makes a cluster without jobs. It starts nothing: the first timer is set
// by the first Start, the first goroutine by Watch.
func New(cfg Config) (*Cluster, error) {
	if len(cfg.Nodes) == 0 {
		cfg.Nodes = []NodeSpec{{Name: "node-1", Cores: 16, MemoryBytes: 64 << 30}}
	}
	if cfg.Parse == nil {
		cfg.Parse = detect.Parse
	}
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	if cfg.Ring <= 0 {
		cfg.Ring = 4096
	}
	if cfg.EnergySource == "" {
		cfg.EnergySource = "modelled"
	}
	if !slices.Contains(energySources(), cfg.EnergySource) {
		return nil, fmt.Errorf("simulated cluster: energy source %q: want one of %s",
			cfg.EnergySource, strings.Join(energySources(), ", "))
	}
	c := &Cluster{
		cfg:       cfg,
		byRequest: make(map[driver.RequestID]*job),
		watchers:  make(map[*watcher]struct{}),
		quit:      make(chan struct{}),
	}
	c.moves.AfterStep = cfg.AfterStep
	for _, spec := range cfg.Nodes {
		if spec.Name == "" || spec.Cores < 1 || spec.MemoryBytes < 1 {
			return nil, fmt.Errorf("simulated cluster: node %+v: want a name, cores and memory", spec)
		}
		if spec.Kind == "" {
			spec.Kind = fmt.Sprintf("sim-%dc", spec.Cores)
		}
		c.nodes = append(c.nodes, &node{spec: spec})
	}
	return c, nil
}

// Close ends all watches and lets no more time pass for the jobs. Every later
// call is driver.ErrTransient. It returns when all goroutines of the cluster are
// gone; closing twice does nothing.
func (c *Cluster) Close() {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		close(c.quit)
		if c.timer != nil {
			c.timer.Stop()
		}
	}
	c.mu.Unlock()
	c.streams.Wait()
}

// schedule starts what fits, first come first served: the first job that waits
// for room keeps all behind it waiting. Held jobs hold nobody else up.
func (c *Cluster) schedule() {
	for {
		j, n := c.next()
		if n == nil {
			return
		}
		c.leaveQueue(j)
		c.begin(j, n)
	}
}

// next finds the job that may start now and the node for it, which is nil where
// none may.
func (c *Cluster) next() (*job, *node) {
	blocked := false
	for _, j := range c.queue {
		switch {
		case j.notBefore.After(c.now):
			j.view.Detail = "waits until " + j.notBefore.UTC().Format(time.RFC3339)
			continue
		case blocked:
			j.view.Detail = "waits for the jobs before it"
			continue
		}
		want := j.resources(j.view.Change)
		for _, n := range c.nodes {
			if n.fits(want) {
				return j, n
			}
		}
		j.view.Detail = "waits for room"
		blocked = true
	}
	return nil, nil
}

// enqueue lets a job wait for its next attempt.
func (c *Cluster) enqueue(j *job, cause driver.Cause, intent string) {
	j.view.State, j.view.Node, j.view.Detail = driver.Pending, "", ""
	j.cause, j.intent = cause, intent
	if d := j.act.QueueWait; d > 0 && j.view.Attempt > 0 {
		j.notBefore = c.now.Add(d)
		c.at(j.notBefore, c.schedule)
	}
	c.queue = append(c.queue, j)
	c.changed(j)
	c.schedule()
}

// canHold tells whether any node could ever hold the resources.
func (c *Cluster) canHold(want driver.Resources) error {
	for _, n := range c.nodes {
		if want.Cores <= n.spec.Cores && want.MemoryBytes <= n.spec.MemoryBytes {
			return nil
		}
	}
	return fmt.Errorf("%w: no node has %d cores and %d bytes of memory", driver.ErrInvalid, want.Cores, want.MemoryBytes)
}
