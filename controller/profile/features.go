package profile

import (
	"math"

	"pitchpipe/exporter/api"
)

// The schemas: which columns a profile was made of. Where further perf events were
// counted api.SchemaWith names the schema by them, so that profiles of other events are
// never compared.
const (
	SchemaPerf       = api.SchemaSoftware   // with perf's software events
	SchemaAccounting = api.SchemaAccounting // accounting of the kernel alone

	// OnGPU ends the schema of a job that was on a GPU: it is never compared with one that
	// was not.
	OnGPU = "+gpu/1"
)

// Feature is one number of a profile. Its name is stable: models are stored with
// it. A new meaning takes a new name.
type Feature struct {
	Name    string
	Formula string // in the columns of package api; Δ is the growth over the window
	Meaning string
}

// Features lists what a profile may hold on any machine, in the order of the
// documentation. Of the perf events that a node counts beside, OfEvent is the feature.
func Features() []Feature {
	var out []Feature
	for _, f := range formulas() {
		out = append(out, f.Feature)
	}
	return out
}

// OfEvent is the feature of a perf event that is not among the software events that are
// always counted. It has the event's name.
func OfEvent(name string) Feature { return eventFormula(name).Feature }

func eventFormula(name string) formula {
	column := api.PerfEvent(name)
	return formula{Feature{name, "ln(1 + Δ" + column + " / CPU s)", "does so often what the event counts"}, rate(column)}
}

// formula computes a feature, or tells that a column is missing.
type formula struct {
	Feature
	value func(stretch) (float64, bool)
}

// stretch is a merged window of epochs.
type stretch struct {
	r        *readings
	from, to float64 // seconds
	cpu      float64 // CPU seconds, at least idleShare of the wall time
	cores    float64 // 0 = unknown
}

// idleShare of the wall time is the least CPU time that rates are divided by, so
// that a job that only waits has large rates and not infinite ones.
const idleShare = 0.01

func (r *readings) stretch(from, to float64, spec Spec) (stretch, bool) {
	cpu, ok := r.cpu(from, to)
	cores, _ := r.cores(from, to, spec)
	return stretch{r, from, to, max(cpu, idleShare*(to-from)), cores}, ok && to > from
}

func (s stretch) wall() float64 { return s.to - s.from }

// formulas are those of any machine, and of the events that were counted here.
func (r *readings) formulas() []formula {
	all := formulas()
	for _, name := range r.events() {
		all = append(all, eventFormula(name))
	}
	return all
}

// features computes every feature whose columns are there.
func (s stretch) features(all []formula) map[string]float64 {
	out := map[string]float64{}
	for _, f := range all {
		if v, ok := f.value(s); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[f.Name] = v
		}
	}
	return out
}

// rate is ln(1 + Δ per CPU second) of the sum of columns.
func rate(columns ...string) func(stretch) (float64, bool) {
	return func(s stretch) (float64, bool) {
		d, ok := s.r.sum(s.from, s.to, columns...)
		return math.Log1p(d / s.cpu), ok
	}
}

// share is the part of the wall time that a stall column grew by.
func share(column string) func(stretch) (float64, bool) {
	return func(s stretch) (float64, bool) {
		d, ok := s.r.delta(column, s.from, s.to)
		return min(d/s.wall(), 1), ok
	}
}

func switches(s stretch) (float64, bool) {
	if v, ok := rate(api.ColContextSwitch)(s); ok {
		return v, true
	}
	return rate(api.ColVoluntary, api.ColInvoluntary)(s)
}

func voluntaryRatio(s stretch) (float64, bool) {
	a, okA := rate(api.ColVoluntary)(s)
	b, okB := rate(api.ColInvoluntary)(s)
	return a - b, okA && okB
}

func systemShare(s stretch) (float64, bool) {
	user, okU := s.r.delta(api.ColUserSeconds, s.from, s.to)
	system, okS := s.r.delta(api.ColSystemSeconds, s.from, s.to)
	return math.Log1p(1000 * system / (user + system)), okU && okS
}

func utilisation(s stretch) (float64, bool) {
	cpu, ok := s.r.cpu(s.from, s.to)
	return cpu / (s.wall() * s.cores), ok && s.cores > 0
}

func rss(s stretch) (float64, bool) {
	v, ok := s.r.mean(api.ColRSS, s.from, s.to)
	return math.Log1p(v / 1024), ok
}

func rssGrowth(s stretch) (float64, bool) {
	l := s.r.gauge(api.ColRSS)
	a, okA := l.interpolate(s.from)
	b, okB := l.interpolate(s.to)
	return (math.Log1p(b/1024) - math.Log1p(a/1024)) / s.wall(), okA && okB
}

func threadsPerCore(s stretch) (float64, bool) {
	v, ok := s.r.mean(api.ColThreads, s.from, s.to)
	return math.Log(v / s.cores), ok && v > 0 && s.cores > 0
}

func gpuBusy(s stretch) (float64, bool) {
	d, ok := s.r.delta(api.ColGPUBusy, s.from, s.to)
	return d / s.wall(), ok
}

func gpuWatts(s stretch) (float64, bool) {
	d, ok := s.r.delta(api.ColGPUJoules, s.from, s.to)
	return math.Log1p(d / s.wall()), ok && !s.r.holed(api.ColGPUJoules, s.from) && !s.r.holed(api.ColGPUJoules, s.to)
}

func gpuMemory(s stretch) (float64, bool) {
	v, ok := s.r.mean(api.ColGPUMemory, s.from, s.to)
	return math.Log1p(v / (1 << 20)), ok
}

func formulas() []formula {
	perCPU := func(column string) string { return "ln(1 + Δ" + column + " / CPU s)" }
	return []formula{
		{Feature{"minor_faults", perCPU(api.ColMinorFaults), "touches memory for the first time: allocates"}, rate(api.ColMinorFaults)},
		{Feature{"major_faults", perCPU(api.ColMajorFaults), "waits for pages from storage"}, rate(api.ColMajorFaults)},
		{Feature{
			"context_switches", "ln(1 + Δ" + api.ColContextSwitch + " / CPU s), else of " + api.ColVoluntary + " + " + api.ColInvoluntary,
			"waits, synchronises, or shares its cores",
		}, switches},
		{Feature{
			"voluntary_ratio", "ln(1 + Δ" + api.ColVoluntary + " / CPU s) - ln(1 + Δ" + api.ColInvoluntary + " / CPU s)",
			"waits for others rather than being made to wait",
		}, voluntaryRatio},
		{Feature{"cpu_migrations", perCPU(api.ColMigrations), "threads come and go, or outnumber the cores"}, rate(api.ColMigrations)},
		{Feature{
			"system_share", "ln(1 + 1000 Δ" + api.ColSystemSeconds + " / (Δ" + api.ColUserSeconds + " + Δ" + api.ColSystemSeconds + "))",
			"works through the kernel",
		}, systemShare},
		{Feature{"cpu_utilisation", "CPU s / (wall s · cores)", "uses the cores that it has"}, utilisation},
		{Feature{"read_chars", perCPU(api.ColReadChars), "reads files, pipes or sockets"}, rate(api.ColReadChars)},
		{Feature{"write_chars", perCPU(api.ColWriteChars), "writes files, pipes or sockets"}, rate(api.ColWriteChars)},
		{Feature{"read_bytes", perCPU(api.ColReadBytes), "reads from storage"}, rate(api.ColReadBytes)},
		{Feature{"write_bytes", perCPU(api.ColWriteBytes), "writes to storage"}, rate(api.ColWriteBytes)},
		{Feature{"rss", "ln(1 + mean " + api.ColRSS + " / KiB)", "size of what it works on; depends on the input"}, rss},
		{Feature{"rss_growth", "ln ratio of " + api.ColRSS + " at both ends / wall s", "grows or shrinks while it works"}, rssGrowth},
		{Feature{"threads_per_core", "ln(mean " + api.ColThreads + " / cores)", "how parallel it is written"}, threadsPerCore},
		{Feature{"cpu_pressure", "Δ" + api.ColCPUPressure + " / wall s", "threads wait for a core"}, share(api.ColCPUPressure)},
		{Feature{"memory_pressure", "Δ" + api.ColMemoryPressure + " / wall s", "threads wait for memory"}, share(api.ColMemoryPressure)},
		{Feature{"gpu_busy", "Δ" + api.ColGPUBusy + " / wall s", "keeps so many GPUs busy"}, gpuBusy},
		{Feature{"gpu_watts", "ln(1 + Δ" + api.ColGPUJoules + " / wall s)", "computes on GPUs rather than waiting for them"}, gpuWatts},
		{Feature{"gpu_memory", "ln(1 + mean " + api.ColGPUMemory + " / MiB)", "size of what it holds on GPUs"}, gpuMemory},
		{Feature{"io_pressure", "Δ" + api.ColIOPressure + " / wall s", "threads wait for storage"}, share(api.ColIOPressure)},
	}
}
