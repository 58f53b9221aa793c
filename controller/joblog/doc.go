// Package joblog reads the logs of batch jobs: the Standard Workload Format, what sacct printed, the
// folder of the Venus trace, and a CSV of our own.
//
// Input: a path and a format; a file may be gzip. Output: a Log: the jobs in the order of the log,
// what it says of the cluster, and the lines that cannot be used, each with its number and the reason.
// Broken lines are never fatal unless nothing is left. Times are seconds, memory is bytes.
//
// The CSV has a header line with these columns in any order, of which submit, duration and one of cpus,
// gpus and nodes are needed: id, user, group (the partition), account, name, state, submit, start,
// duration, limit (all seconds), nodes, cpus, gpus (counts), memory, memory_used (bytes), cpu_seconds and
// kind. An empty cell is unknown. Other columns are left alone.
//
// The package never takes what is missing for zero time, and it imports no simulator.
package joblog
