// Package node reads what the whole machine is and does: CPU model, cores, memory,
// busy and stolen CPU time, load. In: /proc. Output: a description that does not change while the
// exporter runs, and counters that only grow. The package never reads anything of a job.
package node
