// Package slurmctl is what may be done to a job of Slurm, in as few verbs as a driver
// needs, and by whose rights it is done.
//
// Input: the number of a job and one verb. Output: Slurm's own commands, or an
// error that wraps one of package driver's. Commands runs them with the rights of
// its caller: a user for his own jobs, an Operator for everybody's. A broker has
// the same verbs and asks first whether it may. Every verb can be repeated.
// Repairable asks what a Rerun will need. The package remembers nothing, and no verb looks
// at the job first.
package slurmctl
