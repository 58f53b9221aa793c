// Package reconcile is the loop that drives each job through the stages. It is the only place
// that knows their order.
//
// Input: ids of jobs that may have changed. For each, Reconcile re-reads the scheduler and its own
// durable Record, and takes at most one step. What woke it does not matter: a missed event costs
// only the time until the next resync. Output: steps of the driver, each stored as an intent before
// it is taken; one Record per job with its whole story; observations; audit entries.
//
// The package never parses, measures, classifies, plans or compares: it calls the pure stages
// (Stages) and the world (Services). It never reconciles one job twice at a time, and never holds
// a job: when it stops or is paused, running jobs go on, and a job that it stopped is started
// again. A failing job is retried with a growing delay.
//
// A job whose kind is known starts under a better setting, and has no epochs under its owner's to
// compare with. While it runs, the planner may probe these; when it ends, its quality and its cost
// are compared with those of untuned jobs of its kind. A job may also try a setting as a whole run
// (Stages.Return), within the owner's budget of returns, or start under a setting that is only
// predicted, within the site's share. Both are counted from the records and observations, so that a
// crash forgets none, and a try that turns out worse pauses nothing. Regressions are counted from
// the records too; Services.Cleared says since when.
//
// The record keeps the newest twelve different decisions, each with the state that it was made of,
// so that Record.Replay makes them again. Joules that are missing for some epochs support no claim,
// and are a lower bound for the job's budget.
package reconcile
