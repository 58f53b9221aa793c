package proc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

const (
	// The kernel's USER_HZ, which is 100 on every architecture that is in use.
	ticksPerSecond = 100
	// Beyond this many threads the switches are left out: reading them would take
	// more of the node than they are worth.
	maxThreads = 8192
)

// Collector adds up /proc.
type Collector struct {
	root hostfs.Root
}

var _ collector.Collector = (*Collector)(nil)

// New returns a collector for the /proc below root.
func New(root hostfs.Root) *Collector { return &Collector{root: root} }

// Name is "proc".
func (c *Collector) Name() string { return "proc" }

// Probe reads the exporter's own process and, for io, which only the owner and
// root may read, the first process.
func (c *Collector) Probe(context.Context) []api.Source {
	self := c.root.Self()
	_, stat := hostfs.Read(c.root.Pid(self, "stat"))
	_, status := hostfs.Read(c.root.Pid(self, "status"))
	io := collector.Source("proc/io", "per process", nil)
	if _, err := hostfs.Read(c.root.Pid(self, "io")); err != nil {
		io = collector.Source("proc/io", "", err)
	} else if _, err := hostfs.Read(c.root.Pid(1, "io")); os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
		io.Reason = "own processes only: others need CAP_SYS_PTRACE"
	}
	return []api.Source{
		collector.Source("proc/stat", "per process", stat),
		collector.Source("proc/switches", "per thread", status),
		io,
	}
}

// Open begins to add up one job.
func (c *Collector) Open(context.Context, collector.Target) (collector.Reader, error) {
	return &reader{root: c.root, alive: map[int]*process{}, page: float64(unix.Getpagesize())}, nil
}

// process is what was last seen of one.
type process struct {
	stat     Stat
	io       IO
	threads  map[int]thread
	before   map[int]thread // threads of the reading before, used again
	finished Switches       // of threads that are gone
	seen     bool

	turns      Turns // of the main thread, read before the rest
	partly     bool  // the last reading of it was incomplete
	path       string
	parentSeen bool // its parent is one of the job's

	waited  uint64 // ticks of children that it waited for since the reading before
	waiting []Use  // of children that ended and for which it has not waited yet
}

// totals are the counters of processes that are gone.
type totals struct {
	use      Use
	io       IO
	switches Switches
}

type reader struct {
	root  hostfs.Root
	alive map[int]*process
	gone  totals
	last  collector.Values // counters never go below what was said before
	page  float64
	peak  float64

	round    int
	all      bool  // this reading takes nothing for granted
	pids     []int // of the reading before
	buf      []byte
	unturned bool // the kernel does not count turns
	cores    int  // that the first processes may use
	first    [2]int
}

// wholly is that each so many readings the books of every process are read: what others do
// to one that sleeps, such as taking its memory or its CPUs, its turns do not tell.
const (
	wholly = 8
	rarely = 8 * wholly // and its other files too, though its books say that it slept
)

// Follow has nothing to do: processes are named with each reading.
func (r *reader) Follow(context.Context, collector.Target) error { return nil }

// Close has nothing to release.
func (r *reader) Close() error { return nil }

// Read looks at each process and adds up. Processes that end meanwhile are no
// error; an error is that what a process counts may not be read.
func (r *reader) Read(ctx context.Context, m collector.Moment, out collector.Values) error {
	if m.Unlisted {
		return fmt.Errorf("proc: %w", collector.ErrUnlisted)
	}
	for _, p := range r.alive {
		p.seen = false
	}
	r.all = r.round%wholly == 0
	r.round++
	idle := m.Idle && slices.Equal(m.Pids, r.pids)
	r.pids = append(r.pids[:0], m.Pids...)
	var errs []error
	threads, noIO, noSwitches := 0, false, false
	for i, pid := range m.Pids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		turns, slept := r.slept(pid, idle)
		if slept && !r.all {
			p := r.alive[pid]
			p.seen = true
			p.wait(p.stat.Children.ticks())
			threads += int(p.stat.Threads)
			continue
		}
		before, was := Stat{}, r.alive[pid]
		if was != nil {
			before = was.stat
		}
		p, err := r.stat(pid)
		if err != nil {
			errs = append(errs, ignoreGone(err))
			continue
		}
		if i < len(r.first) {
			r.first[i] = 0 // it may have other CPUs now
		}
		p.parentSeen = r.alive[p.stat.Parent] != nil
		threads += int(p.stat.Threads)
		before.RSSPages = p.stat.RSSPages
		if slept && p == was && p.stat == before && r.round%rarely != 0 {
			continue // it slept indeed: what others do to it is its memory and its CPUs alone
		}
		p.turns, p.partly = turns, false
		if err := ignoreGone(r.readIO(p)); err != nil {
			p.turns, p.partly, noIO, errs = Turns{}, true, true, append(errs, err)
		}
		if threads > maxThreads {
			p.turns, p.partly, noSwitches = Turns{}, true, true
		} else if err := ignoreGone(r.readThreads(pid, p)); err != nil {
			p.turns, p.partly, noSwitches, errs = Turns{}, true, true, append(errs, err)
		}
	}
	r.bury()
	r.sum(out, noIO, noSwitches)
	if n := r.allowed(m.Pids); n > 0 {
		out[api.ColAllocatedCores] = float64(n)
	}
	return errors.Join(errs...)
}

// A process that is gone, or whose directory is there but answers "no such
// process", ended while it was read.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func (r *reader) stat(pid int) (*process, error) {
	p := r.alive[pid]
	path := ""
	if p != nil {
		path = p.path
	} else {
		path = r.root.Pid(pid)
	}
	data, err := hostfs.ReadInto(r.buf, path+"/stat")
	if err != nil {
		return nil, err
	}
	r.buf = data
	s, err := ParseStat(data)
	if err != nil {
		return nil, fmt.Errorf("pid %d: %w", pid, err)
	}
	switch {
	case p == nil:
	case p.stat.StartTicks != s.StartTicks:
		r.retire(p) // another process under the same id
		p = nil
	default:
		p.wait(s.Children.ticks())
	}
	if p == nil {
		p = &process{threads: map[int]thread{}, before: map[int]thread{}, path: path}
		r.alive[pid] = p
	}
	p.stat, p.seen = s, true
	return p, nil
}

func (r *reader) readIO(p *process) error {
	data, err := hostfs.ReadInto(r.buf, p.path+"/io")
	if err != nil {
		return err
	}
	r.buf = data
	io, err := ParseIO(data)
	if err == nil {
		p.io = io
	}
	return err
}

func (p *process) switches() Switches {
	s := p.finished
	for _, t := range p.threads {
		s.Voluntary += t.switches.Voluntary
		s.Involuntary += t.switches.Involuntary
	}
	return s
}

func (r *reader) sum(out collector.Values, noIO, noSwitches bool) {
	t := r.gone
	var threads, pages uint64
	for _, p := range r.alive {
		t.use = t.use.plus(p.use())
		t.io = t.io.plus(p.io)
		s := p.switches()
		t.switches.Voluntary += s.Voluntary
		t.switches.Involuntary += s.Involuntary
		threads += p.stat.Threads
		pages += p.stat.RSSPages
	}
	rss := float64(pages) * r.page
	r.peak = max(r.peak, rss)
	counters := collector.Values{
		api.ColUserSeconds:   float64(t.use.UserTicks) / ticksPerSecond,
		api.ColSystemSeconds: float64(t.use.SystemTicks) / ticksPerSecond,
		api.ColCPUSeconds:    float64(t.use.UserTicks+t.use.SystemTicks) / ticksPerSecond,
		api.ColMinorFaults:   float64(t.use.MinorFaults),
		api.ColMajorFaults:   float64(t.use.MajorFaults),
	}
	if !noIO {
		counters[api.ColReadChars], counters[api.ColWriteChars] = float64(t.io.ReadChars), float64(t.io.WriteChars)
		counters[api.ColReadBytes], counters[api.ColWriteBytes] = float64(t.io.ReadBytes), float64(t.io.WriteBytes)
	}
	if !noSwitches {
		counters[api.ColVoluntary], counters[api.ColInvoluntary] = float64(t.switches.Voluntary), float64(t.switches.Involuntary)
	}
	for column, v := range counters {
		counters[column] = max(v, r.last[column])
		out[column] = counters[column]
	}
	for column, v := range r.last {
		if _, ok := counters[column]; !ok {
			counters[column] = v // missing now, and to be continued
		}
	}
	r.last = counters
	out[api.ColRSS], out[api.ColPeak] = rss, r.peak
	out[api.ColThreads], out[api.ColProcesses] = float64(threads), float64(len(r.alive))
}

// allowed is how many CPUs the job's processes are confined to; 0 where they may
// use them all, which is no allocation. It is asked again where the processes that tell
// are others, have run since, or were read wholly.
func (r *reader) allowed(pids []int) int {
	// The processes of a job share one mask nearly always; two tell.
	var tell [2]int
	copy(tell[:], pids)
	if tell == r.first {
		return r.cores
	}
	online, err := r.root.OnlineCPUs()
	if err != nil {
		return 0
	}
	most := 0
	for _, pid := range tell {
		if pid == 0 {
			continue
		}
		data, err := hostfs.ReadInto(r.buf, r.root.Pid(pid, "status"))
		if err != nil {
			continue
		}
		r.buf = data
		most = max(most, Allowed(data))
	}
	if most >= len(online) {
		most = 0
	}
	r.first, r.cores = tell, most
	return most
}
