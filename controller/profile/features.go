package profile

import (
	"math"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// stretch is a run of neighbouring epochs, and what was read in it.
type stretch struct {
	r        *readings
	from, to float64 // seconds
	cpu      float64 // CPU seconds, at least idleShare of the wall time
	cores    float64 // 0 = unknown
	epochs   int
	samples  int
}

// idleShare of the wall time is the least CPU time: a job that only waits has large rates, not
// infinite ones.
const idleShare = 0.01

func (r *readings) stretch(run []tuning.Epoch, spec Spec) (stretch, bool) {
	from, to := r.seconds(run[0].Start), r.seconds(run[len(run)-1].End)
	cpu, ok := r.cpu(from, to)
	cores, _ := r.cores(from, to, spec)
	return stretch{r, from, to, max(cpu, idleShare*(to-from)), cores, len(run), r.count(from, to)}, ok && to > from
}

func (s stretch) wall() float64 { return s.to - s.from }

// value computes one feature of a stretch; false: a column is missing.
type value func(stretch) (float64, bool)

func (s stretch) features(of map[string]value) map[string]float64 {
	out := map[string]float64{}
	for name, compute := range of {
		if v, ok := compute(s); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[name] = v
		}
	}
	return out
}

// values are the features, see FEATURES.md, and the perf events under their own names. Models are
// stored with the names: a new meaning takes a new name.
func (r *readings) values() map[string]value {
	out := map[string]value{
		"minor_faults": rate(api.ColMinorFaults),
		"major_faults": rate(api.ColMajorFaults),
		"context_switches": func(s stretch) (float64, bool) {
			if v, ok := rate(api.ColContextSwitch)(s); ok {
				return v, true
			}
			return rate(api.ColVoluntary, api.ColInvoluntary)(s)
		},
		"voluntary_ratio": func(s stretch) (float64, bool) {
			a, okA := rate(api.ColVoluntary)(s)
			b, okB := rate(api.ColInvoluntary)(s)
			return a - b, okA && okB
		},
		"cpu_migrations": rate(api.ColMigrations),
		"system_share": func(s stretch) (float64, bool) {
			user, okU := s.r.delta(s.from, s.to, api.ColUserSeconds)
			system, okS := s.r.delta(s.from, s.to, api.ColSystemSeconds)
			return math.Log1p(1000 * system / (user + system)), okU && okS
		},
		"cpu_utilisation": func(s stretch) (float64, bool) {
			cpu, ok := s.r.cpu(s.from, s.to)
			return cpu / (s.wall() * s.cores), ok && s.cores > 0
		},
		"read_chars":  rate(api.ColReadChars),
		"write_chars": rate(api.ColWriteChars),
		"read_bytes":  rate(api.ColReadBytes),
		"write_bytes": rate(api.ColWriteBytes),
		"rss":         size(api.ColRSS, 1<<10),
		"rss_growth": func(s stretch) (float64, bool) {
			l := s.r.gauge(api.ColRSS)
			a, okA := l.interpolate(s.from)
			b, okB := l.interpolate(s.to)
			return (math.Log1p(b/1024) - math.Log1p(a/1024)) / s.wall(), okA && okB
		},
		"threads_per_core": func(s stretch) (float64, bool) {
			v, ok := s.r.mean(api.ColThreads, s.from, s.to)
			return math.Log(v / s.cores), ok && v > 0 && s.cores > 0
		},
		"cpu_pressure":    stalled(api.ColCPUPressure),
		"memory_pressure": stalled(api.ColMemoryPressure),
		"io_pressure":     stalled(api.ColIOPressure),
		"gpu_busy":        perSecond(api.ColGPUBusy),
		"gpu_watts": func(s stretch) (float64, bool) {
			d, ok := s.r.measured(s.from, s.to, api.ColGPUJoules)
			return math.Log1p(d / s.wall()), ok
		},
		"gpu_memory": size(api.ColGPUMemory, 1<<20),
	}
	for _, name := range r.events() {
		out[name] = rate(api.PerfEvent(name))
	}
	return out
}

// rate is ln(1 + Δ per CPU second) of the sum of columns.
func rate(columns ...string) value {
	return func(s stretch) (float64, bool) {
		d, ok := s.r.delta(s.from, s.to, columns...)
		return math.Log1p(d / s.cpu), ok
	}
}

func perSecond(column string) value {
	return func(s stretch) (float64, bool) {
		d, ok := s.r.delta(s.from, s.to, column)
		return d / s.wall(), ok
	}
}

// stalled is the part of the wall time that a stall column grew by.
func stalled(column string) value {
	return func(s stretch) (float64, bool) {
		v, ok := perSecond(column)(s)
		return min(v, 1), ok
	}
}

func size(column string, unit float64) value {
	return func(s stretch) (float64, bool) {
		v, ok := s.r.mean(column, s.from, s.to)
		return math.Log1p(v / unit), ok
	}
}

// Disturbance says what kept an epoch from showing the job alone.
type Disturbance string

// The disturbances.
const (
	Steal    Disturbance = "the hypervisor took CPU time"
	Others   Disturbance = "others used cores that are the job's"
	Pressure Disturbance = "its threads waited for cores that others used"
	Still    Disturbance = "its scheduler had it stand still"
)

const (
	stealShare    = 0.05 // of the node's CPU time
	spareCores    = 0.25 // others may exceed what is not the job's by so many cores
	tickSeconds   = 0.02 // and by two clock ticks, in which the node's time is counted
	pressureShare = 0.25 // of the epoch's time in which some thread waited
	pressureCores = 0.05 // others must exceed what is not the job's by this much to be the cause
)

// Disturbed returns what disturbed an epoch of the window, or "". A rule whose columns or numbers
// are missing finds nothing. The job cannot have had all its cores where others exceed what is not
// the job's.
func Disturbed(w api.Window, e tuning.Epoch, spec Spec) Disturbance {
	return read(w).disturbance(tuning.Span{From: e.Start, To: e.End}, spec)
}

func (r *readings) disturbance(during tuning.Span, spec Spec) Disturbance {
	if tuning.Meet(spec.Still, during.From, during.To) {
		return Still
	}
	from, to := r.seconds(during.From), r.seconds(during.To)
	wall := to - from
	if spec.NodeCores < 1 || wall <= 0 {
		return ""
	}
	capacity := float64(spec.NodeCores) * wall
	if steal, ok := r.delta(from, to, api.ColNodeSteal); ok && steal > stealShare*capacity {
		return Steal
	}
	cores, okCores := r.cores(from, to, spec)
	busy, okBusy := r.delta(from, to, api.ColNodeBusy)
	own, okOwn := r.cpu(from, to)
	if !okCores || !okBusy || !okOwn {
		return ""
	}
	excess := busy - own - max(0, capacity-cores*wall)
	if excess > spareCores*wall+tickSeconds {
		return Others
	}
	waited, okWaited := r.delta(from, to, api.ColCPUPressure)
	threads, okThreads := r.threads(from, to, spec)
	if okWaited && okThreads && threads <= cores && waited > pressureShare*wall && excess > pressureCores*wall+tickSeconds {
		return Pressure
	}
	return ""
}

// cpu is the CPU time by the best column that is there.
func (r *readings) cpu(from, to float64) (float64, bool) {
	for _, columns := range [][]string{{api.ColCPUSeconds}, {api.ColUserSeconds, api.ColSystemSeconds}, {api.ColTaskClock}} {
		if v, ok := r.delta(from, to, columns...); ok {
			return v, true
		}
	}
	return 0, false
}

func (r *readings) cores(from, to float64, spec Spec) (float64, bool) {
	v, ok := r.mean(api.ColAllocatedCores, from, to)
	if !ok {
		v = spec.Settings[tuning.Cores].Float()
	}
	return v, v > 0
}

// Run-times keep further threads that sleep, so the settings count first.
func (r *readings) threads(from, to float64, spec Spec) (float64, bool) {
	if v := spec.Settings[tuning.Threads].Float(); v > 0 {
		return v, true
	}
	return r.mean(api.ColThreads, from, to)
}
