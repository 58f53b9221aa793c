// Package slurmcluster brings up a real Slurm of Debian's packages on loopback in a
// private folder, for tests and for people who want to try something.
//
// Input: options: how many nodes, accounting or not, a job_submit.lua, a TaskProlog,
// more lines for slurm.conf. Output: a running munged, slurmctld and slurmd's, with
// accounting also mariadbd and slurmdbd, a way to run commands in it as ordinary
// users, and faults: daemons killed and started again.
//
// Nothing of the machine is changed but processes, one folder below /tmp and the
// cgroups slurm_NODE of its own nodes, and all three are gone after Stop. Node names
// carry the folder's number, so that several clusters on one machine keep apart, and a
// cluster whose owner was killed is cleared away by the next Start. Every process is
// ended by its id, after a look that it belongs to the cluster.
//
// Authors of such a test should know what Slurm does with a job that starts again in
// the second in which its last attempt was ended: it is killed with "Job credential
// revoked" and has failed. Leave two seconds between.
//
// It needs root, the packages and the users that scripts/setup-slurm installs; where
// one is missing Start says so with ErrUnavailable. It starts no service of the
// machine and reads no configuration in /etc.
package slurmcluster
