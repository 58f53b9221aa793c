// Package state is what an exporter leaves to the next one, so that a job's joules
// survive its restart and the last values of jobs that ended can still be read.
//
// In comes the state of the jobs; out goes a file that is whole or not there: it is
// written beside and renamed. A file that cannot be read, is cut short, or is of
// another version, or has joules below 0, is an error that the caller logs and goes on
// without; it can be set aside, so that the next state does not replace it. The package
// decides nothing about jobs: whether one that runs is the one in the file is for
// the sampler to say. What the node took while no exporter ran is nobody's.
//
// Beside the file is a journal, which is written at each sample and costs no wait for a
// disk. An exporter that is killed (SIGKILL, out of memory) so loses nothing that it showed
// at a sample: counters of jobs that run are not set back.
package state
