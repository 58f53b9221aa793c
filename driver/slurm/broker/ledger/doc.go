// Package ledger remembers what a broker did to each job, and what the job's owner had
// asked for before.
//
// In come the sizes that a job is seen with and that are about to be set; out come what
// its owner asked for, and whether a wait is of our making. Every record is durable
// before the effect that it tells of, so that a process that dies in between loses no
// ceiling. It never forgets a job that is still there, and never guesses at a record
// that it cannot read.
package ledger
