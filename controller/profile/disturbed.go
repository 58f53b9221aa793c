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

// Disturbed returns what disturbed an epoch of the window, or "". A rule whose columns or numbers
// are missing finds nothing. The job cannot have had all its cores where others exceed what is not
// the job's.
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
