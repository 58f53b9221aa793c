// Package watch turns a driver's events into a queue of jobs to reconcile.
//
// Input: events that a job may have changed, at any rate and in any order. Output: ids of
// jobs, each at most once at a time, one worker per job. When the stream of events breaks,
// it is opened again, and all jobs are queued. The package never looks at a job.
package watch
