// Package look gathers what package check judges.
//
// Who looks, what the controller's configuration says, and how Slurm's commands, the exporters
// and the broker are asked go in. Facts come out, or one error where there is no Slurm or its
// slurmctld does not answer; what this user may not see is a fact of its own. Try submits two
// tiny jobs to see what the cluster does with a stanza, and cancels them whatever happens; it
// touches no other job. Nothing else changes anything; every call has a time limit.
package look
