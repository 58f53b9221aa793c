// Package replay runs recorded jobs again: with the tuner of jobs that return (Tuner),
// with the whole controller (Plan), with searches over settings (Search) and over learning
// curves (Hyper), with the model of speed under unmeasured settings (Speed), with the division of
// a cluster among elastic jobs (Allocation), and with the actions of running jobs (Adapt).
//
// Input: tables of trials and curves and the choices of a user; output: one
// evaluate.Report. The code that decides is that of the controller; it sees what it paid for
// and nothing else, and only the replay knows the table. The same tables, choices and seed
// give the same report.
//
// # Tuner
//
// A run goes on epoch by epoch: what is measured within it is paid as part of it. A run that does
// not reach its end is stopped by rule and run again under the best settings known, since its
// owner wants the result. Both are paid. Where there is no column of epochs a run counts as one
// epoch, and each return is one of the recorded repeats. A repeat that failed never reaches its
// end. A setting that lacks a number which the goal needs is absent. What breaks a limit saves
// nothing. Each table is also replayed as a job that cannot be moved: every return runs as a
// whole under one setting (recurring.Whole), and at most half of the returns try one. That is
// what the controller does before a job starts.
//
// # Plan
//
// A job starts under its owner's settings and is looked at by the loop of package
// reconcile with the stages that the daemon has. Only the scheduler, the exporter and the
// clock are replaced. What the controller sees has the noise of the recorded repeats, or,
// where a cell has none that differ, the noise asked for; what a job cost is stated in
// expectation, so that luck pays for nothing. Each job may return to a site that remembers
// what its runs taught. Only knobs that do not change what a job learns are moved.
//
// # Search and Hyper
//
// The recorded settings of a workload on a machine are the candidates. In Search a
// measurement brings one recorded run of a setting; a run without an outcome failed and is
// paid for. What was found is the setting measured best, judged by the mean of its runs.
// In Hyper the searcher that decides live gets the events of some workers in the order of a
// simulated clock, on which each epoch takes its recorded seconds and a job 0.05 s to start
// and 0.05 s to end; regret is the least error reached at any epoch less the least recorded. A
// warm start never sees the workload that it is judged on.
//
// # Allocation
//
// Jobs of the recorded workloads arrive at a simulated cluster, which several policies divide. A
// policy never sees a speed that no job of the kind has shown, or a job that has not arrived.
// Speeds are those of workers on as few nodes as the table has: placement is not simulated.
//
// The package writes nothing, asks no controller, and counts nothing missing as zero.
package replay
