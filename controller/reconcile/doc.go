// Package reconcile is the loop, and the only place that knows the order of the
// stages: seen, stanza, profiled, classified, planned, resubmitted, verified,
// learned.
//
// In come keys of jobs that may have changed; for each the loop re-reads the
// scheduler and its own durable record, and takes at most one step. It is
// level-based: what woke it does not matter, and a missed event costs only the
// time until the next resync. Out go effects through the driver, each recorded
// durably as an intent before its first step; a Record per job that tells its
// whole story; lessons for the knowledge; and audit entries.
//
// The package never parses, measures, classifies, plans or compares by itself:
// the stages come in through the small interfaces of Stages. It never holds a
// job: when it stops, or is paused, what runs goes on and what it had stopped is
// started again. One job is never reconciled twice at a time; jobs are
// independent, and an error of one is retried with a growing delay while the
// others go on.
//
// Package tuning, package driver and the standard library are all it imports.
package reconcile
