package sampler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync/atomic"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/state"
	"pitchpipe/exporter/window"
)

// ErrNoJob means that a report came from a process that is in no job.
var ErrNoJob = errors.New("the process is in no job")

// Finder finds jobs; *attrib.Scanner is the real one.
type Finder interface {
	Scan(ctx context.Context) []attrib.Found
	Locate(pid int, uid uint32) (attrib.Key, bool)
	User(pids []int) (uid uint32, ok bool)
}

// NodeReader reads the machine; *node.Node is the real one.
type NodeReader interface {
	CPU() (node.CPU, error)
	Load() (float64, error)
}

// Leaves gives jobs without a v2 cgroup one; *leaf.Maker is the real one.
type Leaves interface {
	Put(name string, pids []int) (dir string, err error)
	Remove(name string) error
}

// Budgets are what the administrator lets jobs use; budget.Folder is the real one.
type Budgets interface {
	Budget(manager, id string) (b api.Budget, ok bool, err error)
}

// Config bounds a sampler; zero fields take the defaults.
type Config struct {
	Interval time.Duration // between samples, default 1 s
	Discover time.Duration // between looks for jobs, default 250 ms
	MarkRate int           // snapshots a second and job, default 20
	Cores    int           // of the node
	Leaves   Leaves        // default: jobs keep the cgroups that they have
	Keep     bool          // snapshots hold what the next exporter has to know
	Earlier  state.State   // what an earlier exporter left
	Boot     string        // of the machine, by which that is believed about jobs that run
	Budgets  Budgets       // what the administrator wrote; default: nothing
	Logger   *slog.Logger  // default: none
}

// Sampler samples. Build it with New and call Run once.
type Sampler struct {
	cfg        Config
	log        *slog.Logger
	finder     Finder
	collectors []collector.Collector // in the order of precedence
	node       NodeReader
	meter      energy.Meter
	store      *window.Store

	marks    chan markRequest
	snapshot atomic.Pointer[Snapshot]

	// Of Run's goroutine.
	jobs       map[attrib.Key]*job
	ended      map[attrib.Key]energy.Joules
	last       map[attrib.Key]*told // what those told that ended
	earlier    map[inode]state.Job
	started    bool      // the first scan is over: what is new now began now
	discovered time.Time // when the last scan began
	cpu        node.CPU
	cpuErr     string
	load       float64
	ledger     ledger
	stats      Stats
}

// Stats count what the sampler did since it began.
type Stats struct {
	Ticks         uint64
	Marks         uint64 // recorded
	MarksBare     uint64 // of these without a snapshot
	MarksRefused  uint64 // from processes in no job
	MarksRepeated uint64 // that another process had told before
	Saves         uint64 // checkpoints that were told
	ReadErrors    uint64
	JobsSeen      uint64
	JobsRefused   uint64  // because the store was full
	TickSeconds   float64 // wall-clock time that all ticks took
	LastTickBegan time.Time
}

// Snapshot is the state of the node after a tick.
type Snapshot struct {
	CPU       node.CPU
	Load      float64
	Book      energy.Book
	JobJoules map[attrib.Key]energy.Joules
	Source    string
	Zones     []energy.Zone // of the meter, where it has some
	IdleWatts float64
	IdleBasis string
	EnergyErr string // why the last interval has no energy; empty = it has
	Stats     Stats
	Running   int
	Users     []UserJoules
	Covered   float64     // seconds whose energy was charged
	At        time.Time   // of the tick
	State     state.State // what the next exporter would have to know
}

// New builds a sampler. Collectors that stand earlier win where two know the same
// column of a job.
func New(cfg Config, finder Finder, collectors []collector.Collector, n NodeReader, meter energy.Meter, store *window.Store) *Sampler {
	cfg.Interval = cmp.Or(max(cfg.Interval, 0), time.Second)
	cfg.Discover = cmp.Or(max(cfg.Discover, 0), 250*time.Millisecond)
	cfg.MarkRate = cmp.Or(max(cfg.MarkRate, 0), 20)
	cfg.Cores = max(cfg.Cores, 1)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Sampler{
		cfg: cfg, log: cfg.Logger, finder: finder, collectors: collectors, node: n, meter: meter, store: store,
		marks: make(chan markRequest), jobs: map[attrib.Key]*job{}, ended: map[attrib.Key]energy.Joules{}, last: map[attrib.Key]*told{}, earlier: map[inode]state.Job{},
	}
	s.restore(cfg.Earlier)
	s.snapshot.Store(&Snapshot{Source: meter.Source(), State: cfg.Earlier})
	return s
}

// Run samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	sample := time.NewTicker(s.cfg.Interval)
	defer sample.Stop()
	discover := time.NewTicker(s.cfg.Discover)
	defer discover.Stop()
	defer s.closeAll()
	s.discover(ctx)
	s.tick(ctx)
	s.started = true
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-discover.C:
			s.discover(ctx)
		case <-sample.C:
			s.tick(ctx)
		case m := <-s.marks:
			m.reply <- s.mark(ctx, m)
		}
	}
}

// Snapshot returns the node as the last tick left it. It is not to be changed.
func (s *Sampler) Snapshot() *Snapshot { return s.snapshot.Load() }

// tick takes one sample of everything.
func (s *Sampler) tick(ctx context.Context) {
	began := time.Now()
	// 1. What the node did.
	s.readNode()
	// 2. What each job did. Those that went since the last tick are read once more,
	// for what still answers.
	for _, j := range s.jobs {
		if !j.over {
			s.read(ctx, j)
			s.budget(j)
		}
	}
	// 3. Who pays for the interval.
	if s.readable() {
		if err := s.ledger.settle(ctx, s.meter, began, s.cpu.Busy, s.cfg.Cores, s.jobs); err != nil {
			s.stats.ReadErrors++
		}
	}
	// 4. Write it down.
	for _, j := range s.jobs {
		switch {
		case j.over:
		case j.gone:
			s.end(j)
		default:
			s.store.Append(j.stored, began, s.complete(j, j.joules.Total()), nil)
		}
	}
	s.store.Prune(began)
	s.stats.Ticks++
	s.stats.LastTickBegan = began
	s.stats.TickSeconds += time.Since(began).Seconds()
	s.publish()
}

func (s *Sampler) readable() bool { return s.cpuErr == "" }

func (s *Sampler) readNode() {
	cpu, err := s.node.CPU()
	text := ""
	if err != nil {
		text = err.Error()
		s.stats.ReadErrors++
	} else {
		s.cpu = cpu
	}
	if text != s.cpuErr {
		s.log.Warn("node counters changed state", "err", text)
		s.cpuErr = text
	}
	if load, err := s.node.Load(); err == nil {
		s.load = load
	}
}

// end writes the last sample of a job that went.
func (s *Sampler) end(j *job) {
	s.store.End(j.stored, j.goneAt, s.complete(j, j.joules.Total()))
	s.ended[j.stored], s.last[j.stored] = j.joules, j.told
	j.close()
	s.fell(j)
	j.over = true
	s.log.Info("job ended", "job", j.stored.String(), "cpu_seconds", j.values[api.ColCPUSeconds], "joules", j.joules.Total())
	if j.vanished {
		delete(s.jobs, j.found.Key)
	}
}

// complete adds the node's columns to a job's readings.
func (s *Sampler) complete(j *job, joules float64) collector.Values {
	out := make(collector.Values, len(j.values)+3)
	maps.Copy(out, j.values)
	if s.readable() {
		out[api.ColNodeBusy] = s.cpu.Busy - j.base.Busy
		out[api.ColNodeSteal] = s.cpu.Steal - j.base.Steal
	}
	if s.ledger.known {
		out[api.ColJoules] = joules
	}
	return out
}

func (s *Sampler) publish() {
	snap := &Snapshot{
		CPU: s.cpu, Load: s.load, Book: s.ledger.book, Source: s.meter.Source(), EnergyErr: s.ledger.err,
		JobJoules: make(map[attrib.Key]energy.Joules, len(s.jobs)), Stats: s.stats,
		Users: s.userJoules(), Covered: s.ledger.covered, At: s.stats.LastTickBegan,
	}
	// Ended jobs keep their joules for as long as the store keeps the job.
	kept := make(map[attrib.Key]energy.Joules, len(s.ended))
	for _, job := range s.store.Jobs(func(j api.Job) bool { return j.Ended }) {
		key := attrib.Key{Manager: job.Manager, ID: job.ID, Attempt: job.Attempt}
		if joules, ok := s.ended[key]; ok {
			kept[key], snap.JobJoules[key] = joules, joules
		}
	}
	s.ended = kept
	maps.DeleteFunc(s.last, func(k attrib.Key, _ *told) bool { _, there := kept[k]; return !there })
	if s.cfg.Keep {
		snap.State = s.state(s.store.Latest(), kept)
	}
	for _, j := range s.jobs {
		snap.JobJoules[j.stored] = j.joules
		if !j.over {
			snap.Running++
		}
	}
	if z, ok := s.meter.(energy.Zoned); ok {
		snap.Zones = z.Zones()
	}
	snap.IdleWatts, snap.IdleBasis = s.meter.IdleWatts()
	s.snapshot.Store(snap)
}

func (s *Sampler) closeAll() {
	for _, j := range s.jobs {
		j.close()
	}
}
