// Package energy measures or models what the node consumes and gives each job its
// share.
//
// In come the counters of energy that the node has, or its busy time and two parameters;
// and for each interval the CPU seconds, cycles, cache misses and allocated cores of the
// jobs, on each package where that is known. Out come joules: of the node, of each job,
// and of the system, which is what no job is charged with; the parts sum to the node in
// each interval by construction.
//
// Find takes the first source that there is, and no other beside it:
//
//   - perf-power: RAPL through the kernel's power PMU, which needs CAP_PERFMON alone and
//     counts in 64 bits. Intel's dies count each for itself; AMD's package has one counter,
//     which some kernels show once for each group of cores, and which counts once;
//   - rapl: the package and DRAM zones of the powercap tree. A counter that begins anew is
//     accumulated in 64 bits, by the range that the kernel states, or where that cannot be
//     or is not readable by those that are in use. A package that a second interface (mmio)
//     counts too is counted once; core, uncore and psys are shown beside;
//   - bmc: what the controller of a Cray node tells (pm_counters);
//   - hwmon: sensors of the board. SENSORS.md lists those that count, and
//     --energy.hwmon others; rails of regulators, power supplies and cards do not;
//   - modelled: idle watts and, in proportion to the busy share of the cores, what is
//     between idle and the maximum. A model is right on average and wrong on any one job.
//
// Counters are read on the sampler's own timer, at least four times in the shortest time
// in which one begins anew at 1 kW (Frequent), and never on request, which would be a
// side channel.
//
// What a part takes without work is the model's guess until it was measured: the power of
// at least ten seconds in which at most a hundredth of the package's cores were busy, with
// the date. The lowest such figure of a day holds. Of DRAM nothing is guessed.
//
// Joules of graphics cards come from package gpu and are added by the sampler; where the
// node's meter counts them too (a sensor of the whole machine) they are taken out of what it
// counts before anything is learned of it or shared out. Of such a meter nothing is learned
// while the cards work, or what they take is guessed (Activity.Guessed). A sum that has a
// modelled part is modelled (Weakest).
//
// A counter of DRAM that cannot be read when the meter is opened is named as missing. One
// that cannot be read later is an error of the interval, as is any other that counts: what
// it misses comes with the next reading. Two counters of one name are refused.
//
// Two jobs that share a package and spend different energy on a cycle cannot be told
// apart by any counter here: each gets the mean of both.
//
// Meters and books are used by one goroutine, the sampler's.
package energy
