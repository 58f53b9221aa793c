package sim

import (
	"sort"
	"time"

	api "pitchpipe/exporter/api"
)

// The counters of an attempt that only its own work moves, and those of a node.
const (
	nUser = iota
	nSystem
	nCPU
	nTaskClock
	nSwitches
	nMigrations
	nMinor
	nMajor
	nVoluntary
	nInvoluntary
	nReadChars
	nWriteChars
	nReadBytes
	nWriteBytes
	nCPUPressure
	nMemoryPressure
	nIOPressure
	nJoules
	nPerfRunning
	nPerfEnabled
	counters // how many

	nodeBusy  = 0
	nodeSteal = 1
)

// counterColumns names the counters of an attempt in the words of the exporter.
func counterColumns() [counters]string {
	return [counters]string{
		nUser: api.ColUserSeconds, nSystem: api.ColSystemSeconds, nCPU: api.ColCPUSeconds,
		nTaskClock: api.ColTaskClock, nSwitches: api.ColContextSwitch, nMigrations: api.ColMigrations,
		nMinor: api.ColMinorFaults, nMajor: api.ColMajorFaults,
		nVoluntary: api.ColVoluntary, nInvoluntary: api.ColInvoluntary,
		nReadChars: api.ColReadChars, nWriteChars: api.ColWriteChars,
		nReadBytes: api.ColReadBytes, nWriteBytes: api.ColWriteBytes,
		nCPUPressure: api.ColCPUPressure, nMemoryPressure: api.ColMemoryPressure, nIOPressure: api.ColIOPressure,
		nJoules: api.ColJoules, nPerfRunning: api.ColPerfRunning, nPerfEnabled: api.ColPerfEnabled,
	}
}

// meter is a course of phases with constant rates in each.
type meter []phase

type phase struct {
	at  time.Time
	sum [counters]float64 // until then
	activity
	rss, peak float64
}

// activity is what a job does while nothing changes. Its zero value means no process at all.
type activity struct {
	rate      [counters]float64 // per second; joules come with the phase
	watts     float64           // measured; 0 = by the work
	memory    float64           // resident, as a share of the peak
	threads   int
	contended bool
	alive     bool
}

// phaseAt is the phase that an instant lies in, the first where it is before all.
func (m meter) phaseAt(t time.Time) *phase {
	i := sort.Search(len(m), func(i int) bool { return m[i].at.After(t) }) - 1
	return &m[max(0, i)]
}

// sumAt is the counters at an instant of the phase.
func (p *phase) sumAt(t time.Time) [counters]float64 {
	sum, d := p.sum, t.Sub(p.at).Seconds()
	for i := range sum {
		sum[i] += d * p.rate[i]
	}
	return sum
}

// loadAt is the node's counters at an instant.
func (n *node) loadAt(t time.Time) [counters]float64 {
	if len(n.load) == 0 || n.load[0].at.After(t) {
		return [counters]float64{}
	}
	return n.load.phaseAt(t).sumAt(t)
}

// idle is a process that waits.
func idle() activity { return activity{alive: true, threads: 1, memory: 1} }

// serial is starting and saving: one core works, mostly on files.
func serial() activity {
	a := activity{alive: true, threads: 1, memory: 0.5}
	a.rate[nUser], a.rate[nSystem] = 0.8, 0.2
	a.rate[nMinor], a.rate[nSwitches], a.rate[nVoluntary] = 2000, 100, 90
	a.rate[nInvoluntary], a.rate[nReadChars], a.rate[nWriteChars] = 10, 1e6, 1e6
	return a
}

// working is an epoch.
func (b *Behaviour) working(r *run, epoch int) activity {
	s, x := r.set, b.Rates
	jitter := func(stream int) float64 { return b.draw(b.RateNoise, r.seed, epoch, 2+stream) }
	wall, cpu := b.relative(s)
	busy := x.CPU * cpu / wall
	busy += x.Spin * max(0, float64(s.usable())-busy)
	a := activity{alive: true, memory: 1, threads: s.threads, contended: b.contended(epoch)}
	over := max(0, float64(s.threads)/float64(s.cores)-1)
	a.rate[nCPUPressure] = over / (1 + over)
	if a.contended {
		busy *= 1 - stolen
		a.rate[nCPUPressure] = max(a.rate[nCPUPressure], stolen)
	}
	busy = min(busy, float64(s.cores))
	system := min(1, x.System*jitter(nSystem))
	a.rate[nUser], a.rate[nSystem] = busy*(1-system), busy*system
	switches := x.ContextSwitches * (1 + over) * jitter(nSwitches)
	a.rate[nSwitches] = busy * switches
	a.rate[nInvoluntary] = busy * switches * x.Involuntary
	a.rate[nVoluntary] = busy * switches * (1 - x.Involuntary)
	for n, perSecond := range map[int]float64{
		nMigrations: x.Migrations, nMinor: x.MinorFaults, nMajor: x.MajorFaults,
		nReadChars: x.ReadChars, nWriteChars: x.WriteChars, nReadBytes: x.ReadBytes, nWriteBytes: x.WriteBytes,
	} {
		a.rate[n] = busy * perSecond * jitter(n)
	}
	a.rate[nMemoryPressure] = min(1, x.MemoryPressure*jitter(nMemoryPressure))
	a.rate[nIOPressure] = min(1, x.IOPressure*jitter(nIOPressure))
	return a
}

// phase ends the present phase of an attempt and begins another, and changes the load of its
// node by the difference.
func (c *Cluster) phase(r *run, a activity) {
	act, n := &r.job.act, r.node
	busy := a.rate[nUser] + a.rate[nSystem]
	a.rate[nCPU], a.rate[nTaskClock] = busy, busy
	if a.alive {
		cores := float64(r.took.Cores)
		a.rate[nJoules] = act.WattsIdle*cores/float64(n.spec.Cores) + act.WattsCore*busy
		if a.watts > 0 {
			a.rate[nJoules] = a.watts
		}
		a.rate[nPerfEnabled] = cores
		a.rate[nPerfRunning] = cores
	}
	p := phase{at: c.now, activity: a, rss: a.memory * float64(act.Memory)}
	if limit := float64(r.took.MemoryBytes); limit > 0 {
		p.rss = min(p.rss, limit)
	}
	p.peak = p.rss
	var old activity
	if len(r.course) > 0 {
		last := &r.course[len(r.course)-1]
		old, p.sum, p.peak = last.activity, last.sumAt(c.now), max(p.peak, last.peak)
	}
	r.course = append(r.course, p)

	n.busy += busy - old.rate[nCPU]
	if a.contended {
		n.contended++
	}
	if old.contended {
		n.contended--
	}
	load := phase{at: c.now, sum: n.loadAt(c.now)}
	load.rate[nodeBusy] = max(0, n.busy)
	if n.contended > 0 {
		load.rate[nodeSteal] = stolen * float64(n.spec.Cores)
	}
	n.load = append(n.load, load)
}
