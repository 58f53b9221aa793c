// Package check says what a Slurm cluster lacks for Pitchpipe, and what an administrator
// changes in which file.
//
// Cluster gathers facts: settings, files and who owns them, accounts, partitions, nodes and
// exporters; its caller finds out what two tiny jobs show (Proof). Judge turns facts
// into findings, in the order of the files to change: what was looked at, a verdict, why it
// matters, and the lines to write. findings.yaml has all findings, with their conditions and
// words. A fact that is not known gives the verdict unknown, never wrong: an ordinary user sees
// less than root, and one machine less than the cluster.
//
// The package changes nothing of the cluster and submits no job.
package check
