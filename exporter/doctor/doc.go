// Package doctor tells an administrator what of the exporter works on a node, what
// does not, why, and the one command that mends it.
//
// In come the answers of the probes and a few facts about the exporter, of the one that runs
// where one answers; out come findings, the same for the same facts: the package reads
// nothing and runs nothing. A thing that the node does not have is absent and needs no
// mending; one that is there and may not be used is denied, and has a command.
package doctor
