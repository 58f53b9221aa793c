// Package check judges a Slurm cluster: what of it is as Pitchpipe needs it, what is missing,
// and what an administrator changes in which file.
//
// Facts that package look gathered go in: settings, files and who owns them, accounts,
// partitions, nodes, exporters, and what two tiny jobs showed. Findings come out, in the order
// of the files to change: what was looked at, a verdict, why it matters, and the lines to
// write; findings.yaml has their words. A fact that is not known gives the verdict unknown,
// never wrong: an ordinary user sees less than root, and one machine less than the cluster.
// The package reads no file of the cluster, runs no command, and changes nothing.
package check
