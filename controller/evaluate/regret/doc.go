// Package regret measures what a decision costs: an input that was never seen is
// recognised by its profile and gets the setting that its class prefers, and what that
// cost is compared with the best that this input could have had.
//
// In come tables of trials and of samples of the same runs, recorded as a factorial of
// workloads × inputs × settings with repeats (see package record); out comes an
// evaluate.Report. Each input of each workload is left out in turn. Classes are learned
// from the profiles of all others without being told how many there are or which
// inputs belong together; what a setting does to a class is derived from the others'
// raw observations; and whether that is worth a move is decided. All three are done by
// the controller's own code: classify.Fit, knowledge.ClassEffects, plan.Decide. The
// input that was left out is profiled under its default setting alone. Where it gets no
// class, or nothing that its class knows is worth a move, it keeps its default and that
// is what it costs. The controller would probe a job without a class; beside stands what
// it costs then: the setting that was cheapest when each was tried once, in the repeat of
// the profile. The probes themselves are not charged: of a job of which nearly all is
// still to come they are a small part.
//
// Nothing is judged by the runs that chose it. A repeat is a block of runs, one of each
// setting. The regret of a choice is its cost in one repeat over the cost, in the same
// repeat, of the setting that was cheapest in the other repeats; the profile is taken
// from another repeat too. So the best of noisy numbers does not look better than it is
// (the winner's curse), and the optimum is a setting and never a lucky run. That an
// optimum picked from few repeats may be the second best makes this regret a little too
// small. Beside it stands the regret in hindsight, over the setting that was cheapest
// in all repeats together, which is a little too large: the truth is between them.
//
// The objectives are those of a stanza. Where a machine measures no joules, core-seconds
// (cores that were allotted × seconds) stand for them: it is what a cluster charges for,
// and the part of the energy that a scheduler decides about. Costs are compared within
// one input only, so long inputs count no more than short ones; means over inputs are
// geometric. The package never compares runs of different machines, and never fills in
// a run that was not made.
package regret
