// Package report sums up what jobs used and what tuning saved.
//
// In come rows, one per job: who ran it, its attempts with their cores, its
// epochs, and whether it was tuned or drawn into the untuned share. Out goes a
// Table: seconds, core-hours, joules with their source, restarts, probes and
// epochs per job or summed per user, account, partition, kind, day or month; and
// the savings of tuned jobs against the untuned share. Text and CSV print it.
//
// What was not measured is missing and never 0: a sum says of how many jobs it
// is, and a job of which the details are forgotten is neither tuned nor untuned.
// Modelled joules are shown apart from measured ones, are never added to
// them, and never support a saving.
//
// A saving is compared on pairs of ended jobs; Match says how they are built.
// The comparison itself comes in as a function, since it belongs to another
// room. Without an untuned job to compare with there is no number, and the
// verdict is inconclusive until the interval says otherwise. A pair whose tuned
// job spent joules that nobody measured says nothing of joules.
//
// The package is pure. It never reads a clock, never does I/O, and never
// estimates what it was not given.
package report
