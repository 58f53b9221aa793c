// Package benchpipeline searches the hyperparameters of real training programs on this machine, with the
// system knobs fixed, searched, and tuned inside the epochs of the trials, and compares what that takes.
//
// Input: the programs pitchpipe, pitchpipe-exporter and workload. Output: a table of tuning seconds, joules with
// their source and best quality, and the ratios with 95 % intervals next to the aims. Each search has its
// own controller and store, except those that are to know the kind already. The package measures and
// judges nothing itself: times, joules and qualities are those that the controller reports.
package benchpipeline
