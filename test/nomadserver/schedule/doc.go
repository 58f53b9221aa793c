// Package schedule decides what should run, as Nomad's scheduler does for one node:
// which allocations of a job are stopped, replaced, updated in place or placed anew.
//
// In comes a job as it is registered, its allocations, and what stands on the node;
// out comes a plan. It is a pure function: it reads no clock, changes nothing that it
// was given and starts nothing.
//
// Its rules are those that a tuning controller stumbles over. An allocation that has
// ended belongs to its version of a batch job: a newer version does all work again,
// finished or not. A replacement that finds no room leaves its predecessor alone.
package schedule
