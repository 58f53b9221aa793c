// Package simulate replays a log of jobs on a cluster under a scheduling policy.
//
// Input: the jobs of a log, the partitions of a cluster and a Spec, which names a policy. Output: a Result: when
// each job began and ended, how long it waited, and whether it was preempted or killed; and figures of it.
//
// A simulation jumps from event to event: a job arrives, a job ends, a policy asked to be woken. At each moment
// first jobs end, then others arrive, then the policies of the partitions with an event decide. A policy is the code
// of one file behind the interface Policy. It sees what a scheduler sees: what was asked for, what waits and runs, how
// long; and it starts, packs, preempts and requeues jobs and sets their limits through its Pool. Durations of jobs
// that have not ended are hidden from it unless its Spec says that it is an oracle.
//
// The rules of fifo, sjf, srtf, qssf, tiresias and lucid are those of the simulator published with Lucid (ASPLOS
// 2023), its arithmetic and its quirks included. The package is pure: the same input gives the same output.
package simulate
