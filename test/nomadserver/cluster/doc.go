// Package cluster holds what a Nomad cluster knows, and the rules by which it changes.
//
// Transactions go in: jobs, evaluations, allocations and variables. Consistent reads come
// out, the allocations and evaluations that a transaction changed, and plans: what to
// stop, to replace and to place, in the order and with the words of Nomad's scheduler.
// The package never starts a process, and never changes a row that it handed out: a
// change puts a copy in its place.
package cluster
