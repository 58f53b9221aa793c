// Package slurmctl is what may be done to a job of Slurm, and with whose rights.
//
// Input: the number of a job and a verb. Output: calls of Slurm's commands, or an error that wraps
// one of package driver's. Commands runs them with the rights of its caller: a user's for his
// own jobs, an Operator's for all. A broker has the same verbs and first asks whether it may.
// Every verb can be repeated. The package remembers nothing, and no verb looks at the job first.
package slurmctl
