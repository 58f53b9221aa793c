// Package slurm runs Pitchpipe against a real Slurm on loopback: two nodes, accounting,
// the shipped submission plugin and the shipped task prolog. Jobs that ordinary users
// submit with sbatch are tuned and keep everything that their owners and other jobs know
// them by, in both modes: by a user's own controller, and by a site's controller with
// its broker, the programs that ship, under accounts other than root and slurm. At the
// end comes a table of the job files that ship, untuned against tuned.
//
// It holds only tests. The cluster is test/slurmcluster's, one for all tests; where
// there can be none the tests are skipped and say why. After them nothing is left: no
// process, mount, cgroup or folder, or the package fails. It asserts nothing about how
// long anything takes.
package slurm
