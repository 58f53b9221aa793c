// Package search says which settings of a job to try next, and which of those
// tried is best.
//
// A Study takes a policy, the owner's own settings, and the trials that were measured
// so far, and returns the next settings, or the reason why there are none, and the best
// trial with its gain and the noise of that gain. The order is coordinate ascent: one
// knob at a time from the best settings found so far, cores before other system knobs
// before others. A setting that was tried is never tried again, and nothing outside the
// space is ever proposed. Memory is not searched (it follows from the observed peak), nor
// are GPUs and the power limit. A knob that changes what the job learns
// (tuning.Policy.Learns) is not probed within a run: no epoch can show what it does.
//
// # Returns
//
// A job that returns, and above all one that cannot be moved, is tuned over its
// returns: a run as a whole has one setting from its start (Returning). Package
// recurring decides; this package turns a policy and the past runs of a kind into
// its terms. A run measured its seconds and joules under one machine kind and by one
// source; others are not compared with it, but for the machine, which is given a level of
// its own where both ran untuned. Computed joules decide only where the site says so.
//
// Knobs that change what a job learns are tried here alone, and only once three runs under
// the owner's have shown what quality is usual. Such a setting is best where two things are
// shown at 95 %: its runs end as well as the guard asks (guard.of), and a whole run costs
// less, to its target where it has one. It may be tried again until then, as long as its
// runs end well enough on average.
//
// The package is pure and holds no state: the same trials and runs give the same answer.
package search
