// Package doctor reports what of the exporter works on a node, what does not, why, and which
// command repairs it.
//
// Input: the answers of the probes and a few facts about the exporter. Output: findings, the same
// for the same facts. The package never reads or runs anything. What the node does not have
// is absent and needs no repair; what is there and may not be used is denied, and has a
// command.
package doctor
