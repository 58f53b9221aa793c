// Package nomad drives the batch jobs of a Nomad cluster by its HTTP API.
//
// In come job files and intents; out come registrations, signals and stops, and jobs
// as Nomad's job versions and allocations show them. What Nomad does not keep stands
// in a Journal: which request made which job, the owner's own specification of a job
// that was changed, and which step of which intent was taken. The process may die at
// any moment: the next one with the same journal goes on. Every step reads the job
// and its allocations anew.
//
// # Names
//
// A job of the namespace default has its own id as driver.JobID, one of another
// namespace ID@NAMESPACE; an id that holds an @ always has its namespace. Each
// allocation of a job is an attempt; exporters know it as ALLOCATION.TASK
// (driver.Attempt.Unit). Nomad knows no owner of a job: it is the namespace.
//
// The package reads no file but those of its journal, logs no token, and never runs
// again what has done its work.
package nomad
