// Package store keeps the state that a pair of controllers shares, and says which of
// them leads.
//
// Input: a KV (the file of bbolt, the variables of Nomad, or the keys of Consul). Output:
// a leader lock (Lead) and a replicated state (Replica): an append-only log of changes,
// compacted into segments. Each controller holds a copy in memory. The package never
// interprets a value, and never repeats a write that may have had its effect without
// looking first.
//
// # Why a deposed leader does no harm
//
// The log is a ring of slots. An entry is written with check-and-set against the version
// of its slot that the writer knows, and slots are never deleted. A new leader reads the
// log to its end and appends its own entry. From then on the next append of any earlier
// leader meets a version that it does not know and fails, however long its request was
// under way. The lock only decides who may append that first entry, and guards what is
// done outside of the store: Lease.Check asks the store before each such effect.
//
// # Why the lock is not consul/api.Lock or nomad/api.Locks
//
// Both renew without a bound on a call: while a connection hangs, their holder goes on
// believing that it leads, and Lock cannot be stopped while it waits. Lead uses the calls
// below them (sessions of Consul, the lock operations on variables), bounds each, and
// believes in the lock for one time to live after the last renewal that was answered.
// LockLeaser releases by a context that has ended; Lead releases by a fresh one.
package store
