// Package journal keeps what Slurm does not: which request made which job, what a
// job's owner asked for before anything was changed, and which step of which
// intent was taken.
//
// In come records, out come the same records after a crash. A record is replaced
// as a whole and is on disk when the call returns; a request id is claimed by one
// caller only. The package never asks Slurm anything: what a record says about
// the scheduler is what was true when it was written.
//
//	requests/HASH    a request id, its marker, and the job that it made
//	jobs/ID.json     the record of one job
package journal
