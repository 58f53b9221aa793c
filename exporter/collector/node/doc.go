// Package node reads what the whole machine is and does: CPU model, cores, memory,
// busy and stolen CPU time, load.
//
// In come /proc and /sys; out come a description that does not change while the
// exporter runs, and counters that only grow. The package knows no jobs.
package node
