// Package reconcile is the loop that drives each job through the stages: seen, stanza,
// profiled, classified, planned, changed, verified, learned. It is the only place that knows
// their order.
//
// Input: ids of jobs that may have changed. For each, Reconcile re-reads the scheduler and
// its own durable Record, and takes at most one step. What woke it does not matter, and a
// missed event costs only the time until the next resync. Output: steps of the driver, each
// stored as an intent before it is taken; one Record per job with its whole story;
// observations for the knowledge; audit entries.
//
// The package never parses, measures, classifies, plans or compares: it calls the pure
// stages (Stages) and the world (Services). It never holds a job: when it stops or is
// paused, running jobs go on, and a job that it stopped is started again. It never
// reconciles one job twice at a time. An error of one job is retried with a growing delay,
// while the others go on.
//
// # Jobs that start under another setting
//
// A job whose kind is known starts under the setting that its kind showed to be better. It
// has no epochs of its own to compare with. While it runs, the planner may suspect the
// setting and probe the owner's; when it ends, its quality and its cost are compared with
// those of untuned jobs of its kind.
//
// A job whose kind has run before may try a setting as a whole run (Stages.Return), within
// the owner's budget of returns. The budget is counted anew at each decision: ended tries
// from the observations, running ones from the records. A crash forgets none, and jobs that
// wait side by side share it. A try that turns out worse pauses nothing.
//
// A waiting job may start under a setting that is only predicted from a running job of its
// kind. The site bounds the share of such jobs. The first run of a kind is never drawn into
// the control group.
//
// # Replay
//
// The record keeps the newest twelve different decisions, each with the state that it was
// made of, so that Record.Replay makes them again. It counts those that it dropped.
//
// # Regressions
//
// Regressions are counted from the records, so that no restart of the controller forgets
// one; Services.Cleared says since when they count. Joules that are missing for some epochs
// support no claim, and are a lower bound for the job's budget.
package reconcile
