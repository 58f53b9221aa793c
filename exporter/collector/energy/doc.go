// Package energy measures or models what the node consumes and gives each job its share.
//
// The input is the node's counters of energy, or its busy time and two parameters, and for
// each interval the CPU seconds, cycles, cache misses and allocated cores of the jobs, by
// package where that is known. The output is joules of the node, of each job, and of the
// system, which is what no job is charged with; the parts sum to the node in each interval.
// The package never reads on request, which would be a side channel.
//
// Find takes the first source that there is, and no other beside it:
//
//   - perf-power: RAPL through the kernel's power PMU, which needs CAP_PERFMON alone and
//     counts in 64 bits. Intel's dies count each for itself; AMD's package has one counter,
//     which some kernels show once for each group of cores;
//   - rapl: the package and DRAM zones of the powercap tree, repaired where a counter begins
//     anew. prometheus/procfs does not repair, and fails as a whole where one zone's range is
//     unreadable. A package that a second interface (mmio) shows too is counted once; core,
//     uncore and psys are shown only;
//   - bmc: pm_counters of the controller of a Cray node;
//   - hwmon: sensors of the board. SENSORS.md lists those that count, --energy.hwmon others;
//   - modelled: idle watts, and in proportion to the busy share of the cores what is between
//     idle and the maximum: right on average and wrong on any one job.
//
// Counters are read at least four times in the shortest time in which one begins anew at 1 kW
// (Meter.Within). What a part takes without work is the model's guess until it was measured:
// the power of at least ten seconds in which at most a hundredth of the package's cores were
// busy. Of DRAM nothing is guessed.
//
// Joules of graphics cards come from package gpu. Where the node's meter counts them too (a
// sensor of the whole machine), they are taken out before anything is learned or shared out;
// nothing is learned while the cards work or their joules are guessed (Activity.Guessed). A
// sum with a modelled part is modelled (Weakest).
//
// A DRAM counter that cannot be read when the meter is opened is named as missing. One that
// cannot be read later is an error of the interval; what it misses comes with the next
// reading. Two jobs that share a package and spend different energy on a cycle cannot be distinguished
// by any counter: each gets the mean of both.
//
// Meters and books belong to one goroutine.
package energy
