// Package joblog reads the logs of batch jobs: the Standard Workload Format, what sacct printed, the
// folder of the Venus trace, and our own CSV.
//
// Input: a path and a format; a file may be gzip. Output: a Log: the jobs in the order of the log,
// what it says about the cluster, and the unusable lines, each with its number and the reason. Broken
// lines are never fatal unless nothing is left. Times are seconds, memory is bytes.
//
// The CSV has a header line with these columns in any order (submit, duration and one of cpus, gpus and
// nodes are required): id, user, group (the partition), account, name, state, submit, start, duration,
// limit (all seconds), nodes, cpus, gpus (counts), memory, memory_used (bytes), cpu_seconds and kind. An
// empty cell is unknown. Other columns are left alone.
//
// The package never takes what is missing for zero time, and it imports no simulator.
package joblog
