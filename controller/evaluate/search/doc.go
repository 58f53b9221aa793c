// Package search replays searches over recorded settings: how near to the best does a
// method come with so many measurements?
//
// In come tables of trials, or of curves whose last epochs count as trials. Of each
// workload on each machine the recorded settings are the candidates; a measurement
// brings one of a setting's recorded runs, so that it is as noisy as the recording. A
// run without an outcome failed: it is paid for and brings nothing. A curve's outcome is
// the last one told, unless the run went on for longer without one than runs usually do.
// Qualities above 1 are percentages. What a search found
// is the setting that it measured best, and it is judged by the mean over all runs of
// that setting against the least such mean, a failed run counted as the worst run of
// its workload. Out comes a Report.
//
// The warm start never sees the workload that it is judged on, nor the same workload on
// another machine; its history are the other workloads of the same file.
package search
