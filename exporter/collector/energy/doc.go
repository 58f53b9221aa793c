// Package energy measures or models what the node consumes and gives each job its share.
//
// Input: the node's counters of energy, or its busy time and two parameters; for each interval
// the CPU seconds, cycles, cache misses and allocated cores of the jobs, by package if known.
// Output: joules of the node, of each job, and of the system, which gets what no job is charged
// with; the parts sum to the node in each interval. The package never reads on request: that
// would be a side channel.
//
// Find takes the first source that there is, and no other:
//
//   - perf-power: RAPL through the kernel's power PMU, which needs CAP_PERFMON alone and
//     counts in 64 bits;
//   - rapl: the package and DRAM zones of the powercap tree, repaired when a counter wraps.
//     prometheus/procfs does not repair, and fails as a whole if one zone's range is unreadable;
//   - bmc: pm_counters of the controller of a Cray node;
//   - hwmon: sensors of the board. SENSORS.md lists those that count, --energy.hwmon adds some.
//     What power was over more than collector.Bridge without a reading is unknown (Split.Lacks);
//   - modelled: idle watts, plus a part of the rest up to the maximum in proportion to the busy
//     share of the cores: right on average and wrong on any one job.
//
// Counters are read at least four times in the shortest time in which one wraps at 1 kW
// (Meter.Within). The model's idle power applies until it was measured: over at least ten
// seconds in which at most a hundredth of the package's cores were busy.
//
// Joules of graphics cards come from package gpu. If the node's meter includes them (a sensor
// of the whole machine), they are subtracted first; nothing is learned while the cards work or
// their joules are guessed (Activity.Guessed). A sum with a modelled part is modelled (Weakest).
//
// Two jobs that share a package and spend different energy on a cycle cannot be distinguished
// by any counter: each gets the mean of both. Meters and books belong to one goroutine.
package energy
