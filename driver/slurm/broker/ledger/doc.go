// Package ledger remembers what a broker did to each job, and what the job's owner had asked
// for before.
//
// The sizes that a job has and that are about to be set go in; what its owner asked for comes
// out, and whether a wait is the broker's. Every record is durable before its effect, so that a
// process that dies in between loses no ceiling. It never forgets a job that still exists, and
// never guesses at a record that it cannot read.
package ledger
