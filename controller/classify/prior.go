package classify

import "strings"

// Prior is what is known of a feature before anything is learned.
type Prior struct {
	Feature string
	Noise   float64 // standard deviation between averaged profiles of two runs of one kind, other inputs included
	Weight  float64 // how much it counts; features that say nearly the same share a weight
	Floor   float64 // of ln(1 + rate): the rate that costs about 1 ‰ of the CPU time, below which all rates count as equal; 0 = none
	Why     string
}

// Priors lists the features of package profile (schemas sw/1 and acct/1).
//
// Floors follow from what one event costs, as measured on a virtual machine: a first
// touch of a page about 2 µs, a switch of context 3 µs, a call that reads or writes
// 100 characters 1 µs. Below, a program's start spread over a short run, its collector and
// its lines of progress would tell it from the very same program with more to do.
func Priors() []Prior {
	return []Prior{
		{"minor_faults", 0.4, 1, 500, "high if it allocates all the time; starts, growth and garbage collection stay below the floor"},
		{"major_faults", 1, 0.25, 0, "rare, and a cold page cache looks the same in any kind"},
		{"context_switches", 0.7, 1, 0, "half to one log unit"},
		{"voluntary_ratio", 0.8, 0.5, 0, "noise of both rates; the same voluntary switches count above"},
		{"cpu_migrations", 1, 0.25, 0, "small counts that depend on what else runs"},
		{"system_share", 0.9, 1, 0, "one log unit in windows of 1 s"},
		{"cpu_utilisation", 0.1, 1.5, 0, "barriers and waits show, and so does a busy node; bounded, so that only its weight lets an idle core stand out"},
		{"read_chars", 1, 1, 1e5, "near constant for what computes, by many log units more for what reads"},
		{"write_chars", 1, 0.5, 1e5, "progress lines and checkpoints move it"},
		{"read_bytes", 2, 0.25, 0, "a warm page cache hides it"},
		{"write_bytes", 2, 0.25, 0, "the kernel decides when to write back"},
		{"rss", 1, 0.25, 0, "depends mostly on the size of the input"},
		{"rss_growth", 0.3, 0.25, 0, "garbage collection makes it swing"},
		{"threads_per_core", 0.4, 0.25, 0, "run-times keep threads that sleep"},
		{"cpu_pressure", 0.15, 0.25, 0, "depends on what else runs"},
		{"memory_pressure", 0.1, 0.25, 0, "depends on the limit as much as on the kind"},
		{"gpu_busy", 0.1, 1.5, 0, "as cpu_utilisation; of several GPUs their sum"},
		{"gpu_watts", 0.15, 1, 0, "repeats to a tenth, and depends on the card, which is the machine's"},
		{"gpu_memory", 1, 0.25, 0, "depends mostly on the size of the input, and on what the allocator keeps"},
		{"io_pressure", 0.15, 0.25, 0, "depends on the page cache"},
	}
}

// hardware begins the names of the schemas of hardware counters.
const hardware = "hw/"

// prior finds a feature; an unknown one counts little, but where the schema is
// one of hardware counters: there every feature is a ratio to the instructions, which
// repeats of a run agree on to a few per cent.
func prior(schema, feature string) Prior {
	for _, p := range Priors() {
		if p.Feature == feature {
			return p
		}
	}
	if strings.HasPrefix(schema, hardware) {
		return Prior{Feature: feature, Noise: 0.1, Weight: 1}
	}
	return Prior{Feature: feature, Noise: 1, Weight: 0.25}
}
