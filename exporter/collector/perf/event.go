package perf

import (
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// nanoseconds is how many of them a column in seconds takes.
const nanoseconds = 1e9

// Event is something that can be counted.
type Event struct {
	Name   string // as perf list has it
	Column string // of a sample
	Metric string // middle of its metric's name; empty = it has no own name
	Help   string

	attr   Attr    // of a PMU's and of a tracepoint once it is resolved
	pmu    string  // in sysfs, that knows it
	family string  // events of one family may share a group
	unit   float64 // counts in one of the column; 0 = 1
	// place is what of a place the event counts; nil = nothing.
	place func(*collector.Place) *float64
}

// further reports whether the event is beyond those that are always counted.
func (e Event) further() bool { return strings.HasPrefix(e.Column, api.PerfEvent("")) }

func (e Event) perUnit() float64 { return max(e.unit, 1) }

// software is the family of events that need no PMU.
const (
	software = "software"
	cpuPMU   = "cpu"
)

// always is how many events of the catalogue every job has: the first ones, whose metrics
// package metrics names.
const always = 5

// Catalogue lists every event that has its own name on any machine, those that are always
// counted first. Metrics of the generic ones end as node_exporter's node_perf_… do; those
// of caches say loads, which is what the kernel counts, while node_exporter says hits.
func Catalogue() []Event {
	const hw, sw, cache = unix.PERF_TYPE_HARDWARE, unix.PERF_TYPE_SOFTWARE, unix.PERF_TYPE_HW_CACHE
	const cgroupSwitches = 11 // PERF_COUNT_SW_CGROUP_SWITCHES
	var out []Event
	columns := [always]string{api.ColTaskClock, api.ColContextSwitch, api.ColMigrations, api.ColMinorFaults, api.ColMajorFaults}
	places := map[string]func(*collector.Place) *float64{
		"task-clock":   func(p *collector.Place) *float64 { return &p.CPUSeconds },
		"cycles":       func(p *collector.Place) *float64 { return &p.Cycles },
		"cache-misses": func(p *collector.Place) *float64 { return &p.Misses },
	}
	for i, row := range []struct {
		kind               uint32
		config             uint64
		name, metric, help string
	}{
		{sw, unix.PERF_COUNT_SW_TASK_CLOCK, "task-clock", "", "CPU time as perf's task clock counts it."},
		{sw, unix.PERF_COUNT_SW_CONTEXT_SWITCHES, "context-switches", "", "Context switches, counted by perf."},
		{sw, unix.PERF_COUNT_SW_CPU_MIGRATIONS, "cpu-migrations", "", "Moves from one CPU to another, counted by perf."},
		{sw, unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, "minor-faults", "", "Page faults that needed no IO."},
		{sw, unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults", "", "Page faults that needed IO."},
		{hw, unix.PERF_COUNT_HW_CPU_CYCLES, "cycles", "cpucycles", "Cycles of the core while the job ran."},
		{hw, unix.PERF_COUNT_HW_INSTRUCTIONS, "instructions", "instructions", "Instructions that were completed."},
		{hw, unix.PERF_COUNT_HW_CACHE_REFERENCES, "cache-references", "cache_refs", "Accesses of the last cache, as the CPU's maker defines them."},
		{hw, unix.PERF_COUNT_HW_CACHE_MISSES, "cache-misses", "cache_misses", "Misses of the last cache, as the CPU's maker defines them."},
		{hw, unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", "branch_instructions", "Branches that were completed."},
		{hw, unix.PERF_COUNT_HW_BRANCH_MISSES, "branch-misses", "branch_misses", "Branches that were predicted wrongly."},
		{hw, unix.PERF_COUNT_HW_BUS_CYCLES, "bus-cycles", "bus_cycles", "Cycles of the bus."},
		{hw, unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "stalled_cycles_frontend", "Cycles in which no instruction could be fetched."},
		{hw, unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "stalled_cycles_backend", "Cycles in which no instruction could be executed."},
		{hw, unix.PERF_COUNT_HW_REF_CPU_CYCLES, "ref-cycles", "ref_cpucycles", "Cycles at a frequency that does not change."},
		{sw, unix.PERF_COUNT_SW_CPU_CLOCK, "cpu-clock", "cpu_clock_seconds", "CPU time as perf's CPU clock counts it."},
		{sw, unix.PERF_COUNT_SW_PAGE_FAULTS, "page-faults", "page_faults", "Page faults, minor and major."},
		{sw, unix.PERF_COUNT_SW_ALIGNMENT_FAULTS, "alignment-faults", "alignment_faults", "Accesses that the kernel had to align."},
		{sw, unix.PERF_COUNT_SW_EMULATION_FAULTS, "emulation-faults", "emulation_faults", "Instructions that the kernel had to emulate."},
		{sw, cgroupSwitches, "cgroup-switches", "cgroup_switches", "Context switches to another cgroup."},
	} {
		e := Event{Name: row.name, Column: api.PerfEvent(row.name), Metric: row.metric, Help: row.help, attr: Attr{Type: row.kind, Config: row.config}, family: cpuPMU, place: places[row.name]}
		if i < always {
			e.Column = columns[i]
		}
		if row.kind == sw {
			e.family = software
		}
		if strings.HasSuffix(row.name, "-clock") {
			e.unit = nanoseconds
		}
		out = append(out, e)
	}
	for _, c := range []struct {
		id       uint64
		name, of string
		accesses string // that the kernel numbers
	}{
		{unix.PERF_COUNT_HW_CACHE_L1D, "L1-dcache", "First cache of data", "load store prefetch"},
		{unix.PERF_COUNT_HW_CACHE_L1I, "L1-icache", "First cache of instructions", "load prefetch"},
		{unix.PERF_COUNT_HW_CACHE_LL, "LLC", "Last cache", "load store prefetch"},
		{unix.PERF_COUNT_HW_CACHE_DTLB, "dTLB", "Translation buffer of data", "load store prefetch"},
		{unix.PERF_COUNT_HW_CACHE_ITLB, "iTLB", "Translation buffer of instructions", "load"},
		{unix.PERF_COUNT_HW_CACHE_BPU, "branch", "Branch predictor", "load"},
		{unix.PERF_COUNT_HW_CACHE_NODE, "node", "Memory of the own and other NUMA nodes", "load store prefetch"},
	} {
		for op, access := range []string{"load", "store", "prefetch"} {
			if !strings.Contains(c.accesses, access) {
				continue
			}
			many := access + "s"
			if access == "prefetch" {
				many = "prefetches"
			}
			add := func(result uint64, name, help string) {
				metric := strings.ToLower(strings.ReplaceAll(c.name+"_"+name, "-", "_"))
				name = c.name + "-" + name
				attr := Attr{Type: cache, Config: c.id | uint64(op)<<8 | result<<16}
				out = append(out, Event{Name: name, Column: api.PerfEvent(name), Metric: metric, Help: c.of + ": " + help, attr: attr, family: cpuPMU})
			}
			add(unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS, many, many+".")
			add(unix.PERF_COUNT_HW_CACHE_RESULT_MISS, access+"-misses", many+" that missed.")
		}
	}
	return out
}
