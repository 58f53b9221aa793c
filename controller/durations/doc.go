// Package durations forecasts how long jobs run and how many arrive, with a model that a person can read.
//
// Input: a site's ended jobs (Ended). Output: a Forecast of a job not yet run (Features): median, mean and
// quantiles in seconds. The model is additive in the logarithm of seconds: one shape function per feature
// (user, group, account, name, size, requested limit, hour, weekday, the last runs of the same owner, name and
// size) and a few pairs of features chosen by what they gain on later jobs (generalised additive models with
// pairwise interactions: Lou, Caruana, Gehrke, Hooker 2013, "Accurate intelligible models with pairwise
// interactions"). So each level of a term is a factor on the duration. The shapes are fitted by backfitting
// with a ridge penalty, which keeps a rare level near the average.
//
// The spread around the model comes from its errors on jobs that it had not seen yet. It blends those of all
// jobs, of jobs of like length and of the user's own. A job counts with what was known when it was
// submitted, never with runs that ended later.
//
// The package is pure and deterministic. An unknown value is its own level, never zero.
package durations
