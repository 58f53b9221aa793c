// Command slurmcluster brings up a private Slurm on loopback, prints what a shell
// needs to use it, and takes it down when it is interrupted.
//
//	go run ./test/slurmcluster/cmd/slurmcluster -accounting -nodes 2
//
// Input: what cluster is wanted, as flags. Output: lines for a shell on standard
// output, and nothing is left behind. It never touches a Slurm of the machine.
package main
