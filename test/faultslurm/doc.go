// Package faultslurm injects faults into a real Slurm on loopback with controllers
// that move jobs, and counts what became of every job.
//
// In come a number of faults and a seed; out comes a table: for each kind of fault
// how often it struck, how many jobs it touched, and how many of them ended exactly
// once. Every job keeps a journal of its own, which knows of each epoch and each
// attempt; the verdict is the journal's and Slurm's, never the controller's. A fault
// that met no job in the middle of anything is not counted.
//
// It holds only tests, and the program that the jobs run. The cluster is
// test/slurmcluster's; where there can be none the test is skipped and says why. It
// never judges how well a job was tuned.
package faultslurm
