// Package node reads what the whole machine is and does: CPU model, cores, memory,
// busy and stolen CPU time, load.
//
// The input is /proc; the output is a description that does not change while the exporter
// runs, and counters that only grow. The package never looks at a job.
package node
