// Package report sums up what jobs used and what tuning saved.
//
// Input: rows, one per job: user, attempts with their cores, epochs, and whether it was tuned or
// drawn into the untuned share. Output: a Table: time, core-hours, joules with their source,
// restarts, probes and epochs per job, or summed per user, account, partition, kind, day or
// month; and the savings of tuned jobs against the untuned share. Text and CSV print it.
//
// A missing number is never 0: a sum counts the jobs that lack it. A job whose details are gone
// is neither tuned nor untuned. Modelled joules are separate from measured ones, are never added
// to them, and never support a saving.
//
// A saving compares pairs of ended jobs (see Match) with package verify. There is no number
// without an untuned job. The verdict is inconclusive until the interval says otherwise.
//
// The package is pure: it never reads a clock, never does I/O, and never estimates.
package report
