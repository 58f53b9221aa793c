package sim

import (
	"sort"
	"time"

	api "pitchpipe/exporter/api"
)

// The counters of an attempt that only its own work moves.
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
)

// counterColumns names the counters in the words of the exporter.
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

// activity is what a job does while nothing changes.
type activity struct {
	rate      [counters]float64 // per second; joules come with the phase
	watts     float64           // measured; 0 = by the work
	memory    float64           // resident, as a share of the peak
	threads   int
	contended bool
	alive     bool
}

// gone is no process at all.
func gone() activity { return activity{} }

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

// phase is a stretch of an attempt in which all rates are constant.
type phase struct {
	at       time.Duration // since the attempt began
	sum      [counters]float64
	activity activity
	rss      float64
	peak     float64
}

// phase ends the present stretch of an attempt and begins another.
func (c *Cluster) phase(r *run, a activity) {
	act := &r.job.act
	busy := a.rate[nUser] + a.rate[nSystem]
	a.rate[nCPU], a.rate[nTaskClock] = busy, busy
	if a.alive {
		cores := float64(r.took.Cores)
		a.rate[nJoules] = act.WattsIdle*cores/float64(r.node.spec.Cores) + act.WattsCore*busy
		if a.watts > 0 {
			a.rate[nJoules] = a.watts
		}
		a.rate[nPerfEnabled] = cores
		a.rate[nPerfRunning] = cores * act.PerfRunning
	}
	p := phase{at: c.now.Sub(r.started), activity: a, rss: a.memory * float64(act.Memory)}
	if limit := float64(r.took.MemoryBytes); limit > 0 {
		p.rss = min(p.rss, limit)
	}
	p.peak = p.rss
	var old activity
	if n := len(r.course); n > 0 {
		last := r.course[n-1]
		old = last.activity
		p.sum = last.sumAt(p.at)
		p.peak = max(p.peak, last.peak)
	}
	r.course = append(r.course, p)
	contended := 0
	if a.contended {
		contended++
	}
	if old.contended {
		contended--
	}
	r.node.shift(c.now, busy-old.rate[nCPU], contended)
}

// sumAt is the counters at an instant of the phase.
func (p *phase) sumAt(at time.Duration) [counters]float64 {
	sum := p.sum
	d := (at - p.at).Seconds()
	for i := range sum {
		sum[i] += d * p.activity.rate[i]
	}
	return sum
}

// phaseAt is the phase that an instant since the start lies in.
func (r *run) phaseAt(at time.Duration) *phase {
	i := sort.Search(len(r.course), func(i int) bool { return r.course[i].at > at }) - 1
	return &r.course[max(0, i)]
}
