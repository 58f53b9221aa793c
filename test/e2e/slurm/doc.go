// Package slurm runs the controller against a real Slurm on loopback: jobs that
// ordinary users submit with sbatch are tuned and keep everything that their owners
// and other jobs know them by.
//
// It holds only tests. The cluster is test/slurmcluster's, one for all tests; where
// there can be none the tests are skipped and say why.
package slurm
