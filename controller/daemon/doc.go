// Package daemon builds the controller's services from the configuration and runs them:
// the embedded scheduler, the watcher, the reconcile loop, the HTTP API on a Unix socket,
// and /metrics.
//
// Input: a configuration; output: a controller that runs until its context ends, and
// leaves every job as it is then. It is the only package that connects the stages of the
// pipeline, which do not know each other. It never decides about a job.
//
// The record of an ended job stays for 30 days, and of at most 10,000 jobs; observations
// and the counts of /metrics stay. The record of a job that its scheduler still knows
// shrinks to the fact that the job is over. Counts and events across all jobs are in
// memory, so that no scrape reads all records.
//
// Connections are bounded for each user, subordinate uids included, and for all users
// together (package peercred). Root, the controller's own account and the owners of live
// jobs have reserved places.
//
// # Two controllers
//
// Controllers that share a store (store.kind; package controller/store) have one leader.
// The others are standbys: they answer questions from a copy that is a few seconds old, and
// refuse every change, naming the leader. Their pitchpipe_leader is 0. The embedded
// scheduler, the watcher and the loop run at the leader only. A new leader loads the shared
// state and goes on with every intent where it was. The file copy.db is a working copy of
// that state. A controller that is alone has its own file, knowledge.db; neither file
// becomes the other. The audit stays on each machine.
//
// No job is moved twice. The log of the store has one writer, so that each job has one line
// of intents. An intent is in the log before its first step. Before each step the store is
// asked whether this controller still leads. Any time can pass between that answer and the
// effect, so the driver compares the intent with the job's present attempt. A controller
// that lost the leadership, or met an entry of another in the log, stops the loop at once
// and ends with ErrDeposed: the service manager starts it again, as a standby. It releases
// the leadership after everything else has ended. After a leader that went silent the next
// one leads within twice store.ttl and store.delay.
//
// On a Slurm cluster the driver's journal (slurm.dir) must be on a file system that both
// controllers see. The journal of Nomad's driver is in the shared state.
package daemon
