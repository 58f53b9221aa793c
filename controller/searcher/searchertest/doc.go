// Package searchertest replays what a search logged, to check that the same events lead to the same decisions.
// In goes the plan and the snapshot of a search; out come its actions, or what differs. It runs nothing.
package searchertest
