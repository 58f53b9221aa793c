package proc

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

const (
	// TicksPerSecond is the kernel's USER_HZ, which is 100 on every architecture that is in use.
	TicksPerSecond = 100
	// Beyond this many threads the switches are left out: reading them would take
	// more of the node than they are worth.
	maxThreads = 8192
	// Each so many readings everything is read of a process, although nothing of it ran by
	// its stat, and its stat although nothing of the job ran: others may take its memory or
	// its CPUs.
	wholly = 8
	// And every so many readings an idle job is read as a whole.
	rarely = 8 * wholly
	// A process with less than this part of the mean CPU time of the job's does not work for it: it is
	// a daemon of the scheduler or a listener to its output.
	working = 5
)

// Collector adds up /proc.
type Collector struct {
	root hostfs.Root
}

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
	_, own := hostfs.Read(c.root.Pid(self, "io"))
	io := collector.Source("proc/io", "per process", own)
	if _, err := hostfs.Read(c.root.Pid(1, "io")); own == nil && os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
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
	return &reader{root: c.root, alive: map[int]*process{}, last: collector.Values{}}, nil
}

type reader struct {
	collector.Static

	root  hostfs.Root
	alive map[int]*process
	gone  counts           // of processes that are
	last  collector.Values // counters never go below what was said before
	peak  float64
	round int
	pids  []int // of the reading before
	buf   hostfs.Buffer
	cores int // that the first processes may use
}

// Read looks at each process and adds up. Processes that end meanwhile are not an error;
// denied access to a process's counts is one.
func (r *reader) Read(ctx context.Context, m collector.Moment, out collector.Values) error {
	if m.Unlisted {
		return errors.New("proc: the job's processes cannot be listed")
	}
	for _, p := range r.alive {
		p.seen = false
	}
	same := slices.Equal(m.Pids, r.pids)
	idle, each, all := m.Idle && same, r.round%wholly == 0, r.round%rarely == 0
	all = all || each && !idle || !same // a process that ended left its io to its parent
	r.round++
	r.pids = append(r.pids[:0], m.Pids...)
	var errs []error
	threads, noIO, noSwitches := 0, false, false
	for _, pid := range m.Pids {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if p := r.alive[pid]; idle && !each && p != nil && !p.partly {
			p.seen = true
			p.wait(p.stat.children.ticks())
			threads += int(p.stat.threads)
			continue
		}
		p, slept, err := r.readStat(pid)
		if err != nil {
			errs = append(errs, ignoreGone(err))
			continue
		}
		threads += int(p.stat.threads)
		if slept && !p.partly && !all {
			continue
		}
		p.partly = false
		if err := ignoreGone(r.readIO(p)); err != nil {
			p.partly, noIO, errs = true, true, append(errs, err)
		}
		if threads > maxThreads {
			p.partly, noSwitches = true, true
			p.anon, p.shared = p.stat.rssPages*uint64(unix.Getpagesize()), 0 // what stat has
		} else if err := ignoreGone(r.readThreads(pid, p)); err != nil {
			p.partly, noSwitches, errs = true, true, append(errs, err)
		}
	}
	r.bury()
	r.sum(out, noIO, noSwitches)
	if !same || each {
		r.cores = r.allowed(m.Pids)
	}
	if r.cores > 0 {
		out[api.ColAllocatedCores] = float64(r.cores)
	}
	return errors.Join(errs...)
}

// ignoreGone drops the errors of a process that ended while it was read: it is gone, or its
// directory is there but answers "no such process".
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
		return nil
	}
	return err
}

func (r *reader) sum(out collector.Values, noIO, noSwitches bool) {
	total := r.gone
	var ticks, threads, anon, shared uint64
	for _, p := range r.alive {
		total = total.plus(p.total())
		ticks += p.stat.own.ticks()
		anon, shared = anon+p.anon, max(shared, p.shared) // most often all map the same
	}
	for _, p := range r.alive {
		if working*p.stat.own.ticks()*uint64(len(r.alive)) >= ticks {
			threads += p.stat.threads
		}
	}
	put := func(column string, v float64) {
		r.last[column] = max(v, r.last[column])
		out[column] = r.last[column]
	}
	for kind, column := range columns() {
		switch {
		case noIO && kind >= readChars && kind <= writeBytes, noSwitches && kind >= voluntary: // missing now, and continued later
		case kind == userTicks, kind == systemTicks:
			put(column, float64(total[kind])/TicksPerSecond)
		default:
			put(column, float64(total[kind]))
		}
	}
	put(api.ColCPUSeconds, float64(total.ticks())/TicksPerSecond)
	rss := float64(anon + shared)
	r.peak = max(r.peak, rss)
	out[api.ColRSS], out[api.ColPeak] = rss, r.peak
	out[api.ColThreads], out[api.ColProcesses] = float64(threads), float64(len(r.alive))
	if fatal := r.fatal(); fatal > 0 {
		out[api.ColFatalSignals] = float64(fatal)
	}
}

// fatal are the signals that end the job where all its processes get them: no process handles them, or one that
// does was started by one that does not, such as a shell without a trap. 0: unknown.
func (r *reader) fatal() uint64 {
	all, above := ^uint64(0), uint64(0)
	for _, p := range r.alive {
		if p.fatal == 0 {
			continue
		}
		all &= p.fatal
		for up := r.alive[p.stat.parent]; up != nil; up = r.alive[up.stat.parent] {
			above |= up.fatal &^ p.fatal
		}
	}
	if all == ^uint64(0) {
		return 0
	}
	return all | above
}

// allowed is how many CPUs the job's processes are confined to; 0 if they may use them all,
// which is not an allocation. The processes of a job share one mask nearly always: two are
// asked.
func (r *reader) allowed(pids []int) int {
	online, err := r.root.OnlineCPUs()
	if err != nil {
		return 0
	}
	most := 0
	for _, pid := range pids[:min(len(pids), 2)] {
		data, err := r.buf.Read(r.root.Pid(pid, "status"))
		if err != nil {
			continue
		}
		most = max(most, Allowed(data))
	}
	if most >= len(online) {
		return 0
	}
	return most
}
