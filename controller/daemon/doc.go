// Package daemon builds the controller's services from the configuration and
// runs them: the embedded scheduler, the watcher, the reconcile loop, the HTTP
// API on a Unix socket, and /metrics.
//
// In comes a configuration; out goes a running controller that ends when its
// context does, leaving every job as it is. It is the one place that knows all
// rooms: it joins the stages, which do not know each other, into what the loop
// asks for. It decides nothing about jobs.
//
// The story of an ended job is kept for 30 days, and of at most 10,000 of them;
// what it taught and what it counted in /metrics stays. Of a job that its
// scheduler still knows there remains that it is over. What is counted and told
// across all jobs is kept in memory, so that no scrape reads them all.
//
// Connections are bounded for each user, subordinate uids included, and for all users
// together (package peercred). Root, the controller's own account and whoever owns a job
// whose story goes on have places beside those.
//
// # Several controllers
//
// Controllers that share a store (store.kind; package controller/store) have one
// leader. The others stand by: they answer what is asked, from a copy that is a few
// seconds old, and refuse every change by the name of the leader; pitchpipe_leader is 0
// there. Nothing else of a controller runs before it leads: not the embedded scheduler,
// not the watcher, not the loop. Who begins to lead finishes what the one before was
// writing, loads everything, and goes on with every intent where it was. The file
// copy.db of its state is a working copy; knowledge.db of a controller that is alone is
// neither read nor written then, and nothing is carried from one to the other. The
// audit stays on each machine.
//
// No job is moved twice: a record is written where it is the one that was read, so that
// there is one line of intents for each job, whoever thinks that it leads; an intent is
// in the shared store before its first step; before each step the store is asked whether
// this controller still leads; and the driver compares the intent with the job's present
// attempt, since between that answer and the effect there can be any time. A controller
// that lost the leadership, or found anything in the store that it did not write, stops
// the loop at once and ends with ErrDeposed: whoever runs it starts it again, and it
// stands by. The leadership is released with a context of its own when everything else
// has ended. After a leader that is not heard the next one leads within twice store.ttl
// and store.delay.
//
// Of a Slurm cluster the journal of the driver (slurm.dir) has to be on a file system
// that both controllers see; that of Nomad's driver is in the shared store.
package daemon
