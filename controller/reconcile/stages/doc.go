// Package stages joins the stages that compute and nothing else: those that propose a
// setting, decide, translate a decision for the scheduler, and compare what came of it.
//
// Out go reconcile.Stages with these filled in. The daemon adds the rooms that know the
// world (job files, exporters, knowledge, audit), and the evaluation of whole jobs adds
// recorded ones: both decide by the same code, because it is joined here and only here.
// The package never does I/O, never reads a clock and holds no state.
package stages
