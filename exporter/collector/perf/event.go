package perf

import (
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
)

// nanoseconds is how many of them a column in seconds takes.
const nanoseconds = 1e9

// Event is something that can be counted.
type Event struct {
	Name   string // as perf list has it
	Column string // of a sample
	Metric string // middle of its metric's name; empty = it has none of its own
	Help   string

	attr Attr    // where pmu is empty
	pmu  string  // that knows it, or "tracepoint"; empty = attr is it
	unit float64 // counts in one of the column; 0 = 1
}

// further reports whether the event is beyond those that are always counted.
func (e Event) further() bool { return strings.HasPrefix(e.Column, api.PerfEvent("")) }

func (e Event) perUnit() float64 { return max(e.unit, 1) }

// always are the software events of every job, whose metrics package metrics names. The
// first leads their group.
func always() []Event {
	sw := func(name, column, help string, config uint64) Event {
		return Event{Name: name, Column: column, Help: help, attr: Attr{Type: unix.PERF_TYPE_SOFTWARE, Config: config}}
	}
	out := []Event{
		sw("task-clock", api.ColTaskClock, "CPU time as perf's task clock counts it.", unix.PERF_COUNT_SW_TASK_CLOCK),
		sw("context-switches", api.ColContextSwitch, "Context switches, counted by perf.", unix.PERF_COUNT_SW_CONTEXT_SWITCHES),
		sw("cpu-migrations", api.ColMigrations, "Moves from one CPU to another, counted by perf.", unix.PERF_COUNT_SW_CPU_MIGRATIONS),
		sw("minor-faults", api.ColMinorFaults, "Page faults that needed no IO.", unix.PERF_COUNT_SW_PAGE_FAULTS_MIN),
		sw("major-faults", api.ColMajorFaults, "Page faults that needed IO.", unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ),
	}
	out[0].unit = nanoseconds
	return out
}

// Catalogue lists every event that has a name of its own on any machine, those that
// are always counted first. Metrics of the generic ones end as node_exporter's
// node_perf_… do; those of caches say loads, which is what the kernel counts, where
// node_exporter says hits.
func Catalogue() []Event {
	out := always()
	add := func(kind uint32, config uint64, name, metric, help string) {
		out = append(out, Event{Name: name, Column: api.PerfEvent(name), Metric: metric, Help: help, attr: Attr{Type: kind, Config: config}})
	}
	const hw, sw, cache = unix.PERF_TYPE_HARDWARE, unix.PERF_TYPE_SOFTWARE, unix.PERF_TYPE_HW_CACHE
	add(hw, unix.PERF_COUNT_HW_CPU_CYCLES, "cycles", "cpucycles", "Cycles of the core while the job ran.")
	add(hw, unix.PERF_COUNT_HW_INSTRUCTIONS, "instructions", "instructions", "Instructions that were completed.")
	add(hw, unix.PERF_COUNT_HW_CACHE_REFERENCES, "cache-references", "cache_refs", "Accesses of the last cache, as the CPU's maker defines them.")
	add(hw, unix.PERF_COUNT_HW_CACHE_MISSES, "cache-misses", "cache_misses", "Misses of the last cache, as the CPU's maker defines them.")
	add(hw, unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", "branch_instructions", "Branches that were completed.")
	add(hw, unix.PERF_COUNT_HW_BRANCH_MISSES, "branch-misses", "branch_misses", "Branches that were predicted wrongly.")
	add(hw, unix.PERF_COUNT_HW_BUS_CYCLES, "bus-cycles", "bus_cycles", "Cycles of the bus.")
	add(hw, unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "stalled_cycles_frontend", "Cycles in which no instruction could be fetched.")
	add(hw, unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "stalled_cycles_backend", "Cycles in which no instruction could be executed.")
	add(hw, unix.PERF_COUNT_HW_REF_CPU_CYCLES, "ref-cycles", "ref_cpucycles", "Cycles at a frequency that does not change.")
	add(sw, unix.PERF_COUNT_SW_CPU_CLOCK, "cpu-clock", "cpu_clock_seconds", "CPU time as perf's CPU clock counts it.")
	out[len(out)-1].unit = nanoseconds
	add(sw, unix.PERF_COUNT_SW_PAGE_FAULTS, "page-faults", "page_faults", "Page faults, minor and major.")
	add(sw, unix.PERF_COUNT_SW_ALIGNMENT_FAULTS, "alignment-faults", "alignment_faults", "Accesses that the kernel had to align.")
	add(sw, unix.PERF_COUNT_SW_EMULATION_FAULTS, "emulation-faults", "emulation_faults", "Instructions that the kernel had to emulate.")
	add(sw, 11, "cgroup-switches", "cgroup_switches", "Context switches to another cgroup.") // PERF_COUNT_SW_CGROUP_SWITCHES
	for _, c := range caches() {
		for op, access := range []string{"load", "store", "prefetch"} {
			if !slices.Contains(c.accesses, access) {
				continue
			}
			config := c.id | uint64(op)<<8
			many := access + "s"
			if access == "prefetch" {
				many = "prefetches"
			}
			metric := strings.ToLower(strings.ReplaceAll(c.name, "-", "_")) + "_" + many
			add(cache, config, c.name+"-"+many, metric, c.of+": "+many+".")
			add(cache, config|unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16, c.name+"-"+access+"-misses",
				strings.TrimSuffix(metric, many)+access+"_misses", c.of+": "+many+" that missed.")
		}
	}
	return out
}

type cache struct {
	id       uint64
	name, of string
	accesses []string
}

func caches() []cache {
	all := []string{"load", "store", "prefetch"}
	return []cache{
		{unix.PERF_COUNT_HW_CACHE_L1D, "L1-dcache", "First cache of data", all},
		{unix.PERF_COUNT_HW_CACHE_L1I, "L1-icache", "First cache of instructions", []string{"load", "prefetch"}},
		{unix.PERF_COUNT_HW_CACHE_LL, "LLC", "Last cache", all},
		{unix.PERF_COUNT_HW_CACHE_DTLB, "dTLB", "Translation buffer of data", all},
		{unix.PERF_COUNT_HW_CACHE_ITLB, "iTLB", "Translation buffer of instructions", []string{"load"}},
		{unix.PERF_COUNT_HW_CACHE_BPU, "branch", "Branch predictor", []string{"load"}},
		{unix.PERF_COUNT_HW_CACHE_NODE, "node", "Memory of the own and other NUMA nodes", all},
	}
}
