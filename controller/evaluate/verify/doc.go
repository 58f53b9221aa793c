// Package verify measures the controller's verdicts: how often they claim an effect
// where there is none, however often they are looked at, how often they find one that is
// there, after how many epochs or pairs of jobs, and how often the interval holds the
// truth at every look.
//
// In come tables of trials, samples and curves (or adaptations); out comes an
// evaluate.Report. Where nothing was changed, nothing has an effect: repeats of one
// setting and the epochs of one run are the recorded nulls, noise of known kinds the
// simulated ones. An effect is put in by making the tuned side so much shorter. Each
// null is replayed many times, and controller/verify.Compare is asked after every epoch
// of a job after its move, or after every pair of jobs, as the controller and its report
// ask it.
//
// What a null breaks of what an interval relies on stands in its rows as a limit, and
// such rows are kept apart in the summary; curves whose epochs usually grow or shrink as a
// run goes on are such. The package never asks about runs that failed.
package verify
