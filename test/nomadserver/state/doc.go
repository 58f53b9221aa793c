// Package state holds what a cluster knows: jobs with their versions and sources,
// evaluations, allocations and scaling events, each with the index of its last change.
//
// In come transactions; out come consistent reads, the changes of each transaction in
// order, and a way to wait for the next one. What was put in is never changed
// afterwards: who wants a change puts a copy in its place, so readers need no lock for
// what they were given. It decides nothing: who runs what is the business of schedule.
package state
