// Package watch turns driver events and a periodic resync into a queue of job
// keys.
//
// In come events that a job may have changed, at any rate and in any order; out
// come keys, each at most once at a time: a key that is added again while it is
// worked on comes back after Done. A stream that ends is opened again after a
// pause, and the resync lists every job, so a lost event costs time and nothing
// else: a job that runs, or of which the list says something new, is looked at, and
// after every tenth list each of them. The package never looks at a job.
package watch
