// Package energy measures or models what the node consumes and gives each job its
// share.
//
// In come the powercap tree, or the node's busy time and two parameters; and for
// each interval the CPU seconds and allocated cores of the jobs. Out come joules:
// of the node, of each job, and of the system, which is what no job is charged
// with; the parts sum to the node in each interval by construction.
//
// Where powercap can be read, the source is "rapl": package and DRAM zones, wraps
// accumulated in 64 bits; a package that a second interface (mmio) counts too is
// counted once, and core, uncore and psys are shown beside. It is read on the sampler's own timer and never on
// request, which would be a side channel. Otherwise the source is "modelled": idle
// watts and, in proportion to the busy share of the cores, what is between idle and
// the maximum. A model is right on average and wrong on any one job.
//
// Meters and books are used by one goroutine, the sampler's.
package energy
