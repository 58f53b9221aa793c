// Package check judges a Slurm cluster: what of it is as Pitchpipe needs it, what is
// missing, and what an administrator changes in which file.
//
// In come facts that others gathered (package look): the cluster's settings, files
// and who owns them, accounts, partitions, nodes, exporters, and what two tiny jobs
// showed (package prove). Out come findings, each with what was looked at, a verdict,
// one sentence that says why it matters, and the lines to write, in the order of the
// files to change; and the same as a text.
//
// A fact that is not known gives the verdict unknown, never wrong: an ordinary user
// sees less than root, and one machine sees less than the cluster. The package reads
// no file, runs no command, and changes nothing.
package check
