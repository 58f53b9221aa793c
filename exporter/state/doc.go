// Package state is what an exporter leaves to the next one, so that a job's joules survive
// its restart and the last values of jobs that ended can still be read.
//
// The input is the state of the jobs; the output is a file that is whole or not there, and
// beside it a journal that is written at each sample without waiting for a disk, so that an
// exporter that is killed sets no job's joules back. The package never decides whether a job
// that runs is the one in the file: that is the sampler's.
//
// A file that cannot be read, is of another version, or has joules below 0 is an error; it
// can be set aside, so that the next state does not replace it.
package state
