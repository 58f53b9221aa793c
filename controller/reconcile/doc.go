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
// Some things it asks for only when they matter: what a restart would meet at the
// scheduler, when the planner would act on a running job; the attempt before the
// present one, until its last epochs are in. A job that was changed before its
// start has nothing of its own to be compared with: while it runs the planner may
// doubt it, and its owner's settings are probed; at its end its quality is held
// against that of untuned jobs of its kind. What was worse is in its lesson.
//
// A job that has not started, and whose kind has run before, may be given a setting to
// try as a whole run (Stages.Return), within the budget of returns that its owner gave.
// How many were spent is counted each time: those that are over from their lessons, those
// that are under way from their records, so that jobs which wait side by side share the
// budget, and a crash forgets none. Such a job is verified and doubted like one that was
// recalled; that it turned out worse is what it was for, and pauses nobody.
//
// A job that waits may begin under what is only predicted, from what another of its kind
// makes of its cores, the site's share of the live jobs of the kind at most. When it ends it
// is compared with the untuned runs of the kind (Stages.Stands). The first run of a kind is
// never drawn into the untuned share.
//
// What was decided is kept with the state that it was decided by, as long as the
// record does not grow too large, so that Record.Replay makes it again: the newest
// twelve that are no repetition, each as what differs from the one before. How many
// were dropped is kept too. That a profile is waited for is no such decision.
//
// Regressions are counted from the records, so that neither a restart nor a crash
// of the controller forgets any; the stage Cleared says from when on they count.
// Joules that are missing for some epochs are no claim, and still a lower bound
// for the job's budget.
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
