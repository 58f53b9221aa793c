// Package search says which settings of a job to try next, and which of those tried is best.
//
// Input: a policy, the owner's settings, and the trials so far (Study) or the past runs of the kind
// (Returning). Output: the next settings, or the reason why there are none, and the best with its
// gain and the noise of that gain. A Study is coordinate ascent: one knob at a time from the best
// settings so far, cores first. The package is pure: the same trials and runs give the same answer.
// It never tries a setting twice, proposes nothing outside the space, and does not search memory,
// GPUs and the power limit.
//
// A job that cannot be moved is tuned over its returns: a run as a whole has one setting from its
// start. Runs are compared on one kind of machine and by one source of joules.
//
// A knob that changes what the job learns is not probed within a run, since no epoch can show what
// it does. Whole runs try it once three runs under the owner's settings have shown what quality is
// usual. Such a setting is best where its runs end as well as the guard asks and a whole run costs
// less, both at 95 %.
package search
