package profile

import (
	"slices"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

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

// Disturbed tells what disturbed an epoch of the window, or nothing ("").
//
//   - Still: it was suspended meanwhile, as far as the scheduler says when.
//   - Steal: the hypervisor took more than 5 % of the node's CPU time.
//   - Others: what the node was busy with besides the job exceeds the cores that
//     are not the job's by a quarter of a core and two clock ticks: the job
//     cannot have had all its cores.
//   - Pressure: for more than a quarter of the time some thread waited for a CPU,
//     although the job has no more threads than cores, and others used more than
//     what is not the job's by a twentieth of a core and two clock ticks.
//
// A rule whose columns or numbers are missing finds nothing.
func Disturbed(w api.Window, e tuning.Epoch, spec Spec) Disturbance {
	return read(w).disturbance(e, spec)
}

func (r *readings) disturbance(e tuning.Epoch, spec Spec) Disturbance {
	if slices.ContainsFunc(spec.Still, func(s tuning.Span) bool { return s.Meets(e.Start, e.End) }) {
		return Still
	}
	from, to := r.seconds(e.Start), r.seconds(e.End)
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

// cpu is the CPU time of the job, by the best column that is there.
func (r *readings) cpu(from, to float64) (float64, bool) {
	for _, columns := range [][]string{{api.ColCPUSeconds}, {api.ColUserSeconds, api.ColSystemSeconds}, {api.ColTaskClock}} {
		if v, ok := r.delta(from, to, columns...); ok {
			return v, true
		}
	}
	return 0, false
}

// cores is how many cores the job has been given.
func (r *readings) cores(from, to float64, spec Spec) (float64, bool) {
	v, ok := r.mean(api.ColAllocatedCores, from, to)
	if !ok {
		v = spec.Settings[tuning.Cores].Float()
	}
	return v, v > 0
}

// threads is how many threads compute: what the settings say, since run-times
// keep further ones that sleep, else all that live.
func (r *readings) threads(from, to float64, spec Spec) (float64, bool) {
	if v := spec.Settings[tuning.Threads].Float(); v > 0 {
		return v, true
	}
	return r.mean(api.ColThreads, from, to)
}
