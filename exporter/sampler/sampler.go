package sampler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
	"pitchpipe/exporter/window"
)

// ErrNoJob means that a report came from a process that is in no job.
var ErrNoJob = errors.New("the process is in no job")

// Finder finds jobs; *attrib.Scanner is the real one.
type Finder interface {
	Scan(ctx context.Context) []attrib.Found
	Locate(pid int, uid uint32) (attrib.Key, bool)
	Started(pid int) uint64 // when a process began, in ticks after boot; 0 = none
	User(pids []int) (uid uint32, ok bool)
}

// NodeReader reads the machine; *node.Node is the real one.
type NodeReader interface {
	CPU() (node.CPU, error)
	Load() (float64, error)
}

// PerfCgroups gives jobs without a cgroup in perf's hierarchy one; *perf.Cgroups is the real
// one.
type PerfCgroups interface {
	Hierarchy() string // its name
	Put(name string, pids []int) (dir string, err error)
	Remove(name string) error
}

// Config bounds a sampler; zero fields take the defaults.
type Config struct {
	Interval    time.Duration // between samples, default 1 s
	Discover    time.Duration // between looks for jobs, default 250 ms
	MarkRate    int           // snapshots a second and job, default 20
	Cores       int           // of the node
	PerfCgroups PerfCgroups   // default: jobs keep the cgroups that they have
	Keep        bool          // snapshots hold what the next exporter has to know
	Earlier     State         // what an earlier exporter left
	Boot        string        // of the machine, whose word about running jobs is believed
	// Budget is what the administrator lets a job use, without joules where that is any number,
	// such as BudgetFolder.Budget; nil = there are no budgets.
	Budget func(manager, id string) (api.Budget, error)
	// Sockets is the package of each CPU; nil = there is one.
	Sockets map[int]int
	// Workers are those of sources that were asked before, by the names of their collectors,
	// "attrib" and "node": a call of one may still hang.
	Workers map[string]*collector.Worker
	// GPUs returns the joules of all graphics cards since any beginning, and when they were
	// read; nil = none.
	GPUs func() (joules float64, at time.Time, known bool)
	// Journal keeps at each tick what the next exporter has to know where Keep is set, so
	// that even one that is killed sets no job's counter back; nil = it is not kept.
	Journal func(State) error
	Logger  *slog.Logger // default: none
}

// Sampler samples. Build it with New and call Run once.
type Sampler struct {
	cfg        Config
	log        *slog.Logger
	finder     Finder
	collectors []collector.Collector // in the order of precedence
	node       NodeReader
	meter      energy.Meter
	touched    time.Time // when it was last read
	store      *window.Store

	marks    chan markRequest
	workers  map[string]*collector.Worker // by source
	mute     map[string]fault             // by source
	snapshot atomic.Pointer[Snapshot]

	// Of Run's goroutine.
	jobs       map[attrib.Key]*job
	ended      map[attrib.Key]*reportLog // of attempts that the store still has
	earlier    map[inode]window.Attempt
	leftovers  map[attrib.Key]leftover // which are not jobs
	refused    map[attrib.Key]bool     // jobs that the store had no room for
	room       bool                    // an attempt has ended since
	looks      int                     // for jobs
	began      time.Time               // of the first tick
	started    bool                    // the first scan is over: what is new now began now
	discovered time.Time               // when the last scan began
	cpu        node.CPU
	cpuFault   fault
	load       float64
	unkept     fault // of the journal
	ledger     ledger
	stats      Stats
}

// Stats count what the sampler did since it began.
type Stats struct {
	Ticks         uint64
	Marks         uint64 // recorded
	MarksBare     uint64 // of these without a snapshot
	MarksRefused  uint64 // from processes in no job
	MarksRepeated uint64 // that another process had reported before
	Saves         uint64 // checkpoints that were reported
	ReadErrors    uint64
	JobsRefused   uint64  // because the store was full
	TickSeconds   float64 // wall-clock time that all ticks took
}

// New builds a sampler. Earlier collectors win where two know the same column of a job.
func New(cfg Config, finder Finder, collectors []collector.Collector, n NodeReader, m energy.Meter, store *window.Store) *Sampler {
	cfg.Interval = cmp.Or(max(cfg.Interval, 0), time.Second)
	cfg.Discover = cmp.Or(max(cfg.Discover, 0), 250*time.Millisecond)
	cfg.MarkRate = cmp.Or(max(cfg.MarkRate, 0), 20)
	cfg.Cores = max(cfg.Cores, 1)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	s := &Sampler{
		cfg: cfg, log: cfg.Logger, finder: finder, collectors: collectors, node: n, meter: m, store: store,
		marks: make(chan markRequest), workers: map[string]*collector.Worker{}, mute: map[string]fault{},
		jobs: map[attrib.Key]*job{}, ended: map[attrib.Key]*reportLog{}, earlier: map[inode]window.Attempt{}, leftovers: map[attrib.Key]leftover{}, refused: map[attrib.Key]bool{},
	}
	maps.Copy(s.workers, cfg.Workers)
	s.restore(cfg.Earlier)
	s.ledger.sockets = sockets{of: cfg.Sockets, pkgs: slices.Compact(slices.Sorted(maps.Values(cfg.Sockets)))}
	s.ledger.users = map[uint32]energy.Joules{}
	m.Recall(cfg.Earlier.Idle)
	s.snapshot.Store(&Snapshot{Source: m.Source(), Base: m.Base(), State: cfg.Earlier})
	return s
}

// Run samples until ctx ends.
func (s *Sampler) Run(ctx context.Context) error {
	sample := time.NewTicker(s.cfg.Interval)
	defer sample.Stop()
	discover := time.NewTicker(s.cfg.Discover)
	defer discover.Stop()
	var refresh <-chan time.Time
	if within := s.meter.Within(); within > 0 && within < s.cfg.Interval {
		t := time.NewTicker(within)
		defer t.Stop()
		refresh = t.C
	}
	defer func() {
		for _, j := range s.jobs {
			j.close()
		}
	}()
	s.discover(ctx)
	s.tick(ctx)
	s.started = true
	for {
		select {
		case <-ctx.Done():
			s.tick(context.WithoutCancel(ctx)) // what was used since the last one goes into the journal
			return nil
		case <-discover.C:
			s.discover(ctx)
		case <-sample.C:
			s.tick(ctx)
		case <-refresh:
			if err := s.readMeter(ctx, time.Now()); err != nil {
				s.stats.ReadErrors++ // the next tick says which
			}
		case m := <-s.marks:
			m.reply <- s.mark(ctx, m)
		}
	}
}

// Snapshot returns the node as the last tick left it. It is not to be changed.
func (s *Sampler) Snapshot() *Snapshot { return s.snapshot.Load() }

func (s *Sampler) tick(ctx context.Context) {
	began := time.Now()
	if s.began.IsZero() {
		s.began = began
	}
	// 1. What the node did. Its graphics cards come before the jobs, whose shares of them
	// are then never behind.
	s.readNode()
	if s.cfg.GPUs != nil {
		s.ledger.cards.see(s.cfg.GPUs())
	}
	// 2. What each job did. Those that went since the last tick are read once more,
	// for what still answers.
	alive := make([]*job, 0, len(s.jobs))
	for _, j := range s.jobs {
		// Sources that did not answer when the job was opened are tried again.
		if slices.ContainsFunc(j.absent, func(a api.Source) bool { return a.Silent && s.worker(a.Name).Stuck() == nil }) {
			s.open(ctx, j)
		}
		alive = append(alive, j)
	}
	s.read(ctx, alive...)
	s.budget(alive...)
	// 3. Who pays for the interval.
	if s.readable() {
		err := s.ledger.settle(s.meter, s.readMeter(ctx, began), began, s.cpu, s.jobs)
		if err != nil {
			s.stats.ReadErrors++
		}
		s.ledger.fault.set(s.log, err, "the energy of source "+s.meter.Source()+", without which joules are missing")
	}
	// 4. Write it down.
	for _, j := range alive {
		if j.gone {
			s.end(j, began)
			continue
		}
		s.store.Charge(j.stored, j.kept())
		s.store.Append(j.stored, began, s.complete(j, began, j.joules.Total()), nil)
	}
	s.store.Prune(began)
	s.stats.Ticks++
	s.stats.TickSeconds += time.Since(began).Seconds()
	s.publish(began)
}

func (s *Sampler) readable() bool { return s.cpuFault == "" }

// end writes the last sample of a job that went.
func (s *Sampler) end(j *job, now time.Time) {
	// What it took while the meter failed is charged to others, or to none.
	j.joules.Lacks = j.joules.Lacks || s.ledger.fault != ""
	s.store.Charge(j.stored, j.kept())
	s.store.End(j.stored, j.goneAt, s.complete(j, now, j.joules.Total()))
	s.ended[j.stored], s.room = j.reports, true
	j.close()
	s.removePerfCgroup(j)
	s.log.Info("job ended", "job", j.stored.String(), "cpu_seconds", j.values[api.ColCPUSeconds], "joules", j.joules.Total())
	delete(s.jobs, j.found.Key)
	if !j.vanished {
		s.leftovers[j.found.Key] = leftover{j.found, j}
	}
}

// complete adds the node's columns to what the last reading of a job had.
func (s *Sampler) complete(j *job, now time.Time, joules float64) collector.Values {
	out := make(collector.Values, len(j.values)+3)
	for column, v := range j.values {
		// What its source did not tell this time is missing, and not what it was before.
		if j.fresh[column] || j.gone {
			out[column] = v
		}
	}
	if s.readable() {
		out[api.ColNodeBusy] = max(s.cpu.Busy-j.base.Busy, 0)
		out[api.ColNodeSteal] = max(s.cpu.Steal-j.base.Steal, 0)
	}
	if s.ledger.knows(now, s.cfg.Interval) || j.joules.Lacks {
		j.addEnergy(out, joules)
	}
	return out
}

// fault is what is wrong with something; empty = nothing.
type fault string

// set logs what is wrong, or that nothing is any more, where that changed. The words say with
// what; they are put together only then.
func (f *fault) set(to *slog.Logger, err error, what string, of ...attrib.Key) {
	was := *f
	if *f = ""; err != nil {
		*f = fault(err.Error())
	}
	if *f == was {
		return
	}
	for _, key := range of {
		what += " " + key.String()
	}
	if *f == "" {
		to.Info("no trouble any more", "with", what)
	} else {
		to.Warn("trouble", "with", what, "err", string(*f))
	}
}
