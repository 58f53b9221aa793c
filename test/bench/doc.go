// Command bench prints what Pitchpipe costs on this machine.
//
//	bench slurm|nomad [flags]   watching a queue, and how soon a new job is seen
//	bench exporter [flags]      a scrape and sampling, next to node_exporter
//	bench search [flags]        a search of many trials on a simulated cluster
//	bench mind [flags]          the evaluations of the tuner's mind on recorded runs
//	bench pipeline [flags]      searches with system knobs fixed, searched and pipelined
//
// Input: numbers of jobs and times. Output: a report with the machine and its load, and the
// project's demands next to the findings. It never measures on a cluster that it did not
// start itself, and leaves nothing behind.
package main
