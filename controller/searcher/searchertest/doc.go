// Package searchertest replays what a search logged, to check that the same events lead to the same decisions.
// Input: the plan and the snapshot of a search; output: its actions, or what differs. It runs nothing.
package searchertest
