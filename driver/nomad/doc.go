// Package nomad drives the batch jobs of a Nomad cluster by its HTTP API.
//
// Input: job files and intents. Output: registrations, signals and stops, and jobs
// as Nomad's job versions and allocations show them. A Journal has what Nomad does not
// keep: which request made which job, the owner's own specification of a job that was
// changed, and which step of which intent was taken. The process may die at any moment:
// the next one with the same journal goes on. The package reads no file, logs no token, and
// never runs again what has done its work. TRAPS.md lists what Nomad does that one would not
// expect, with the test that shows it.
//
// # Names
//
// A job of the namespace default has its own id as driver.JobID, one of another
// namespace ID@NAMESPACE; an id that holds an @ always has its namespace. Each
// allocation of a job is an attempt, and each restart in place with other variables;
// exporters know both as ALLOCATION.TASK (driver.Attempt.Unit). Nomad knows no owner of
// a job: it is the namespace.
//
// DESIGN.md says how it sees, starts, moves and advises jobs, and why each of these is done in this way.
package nomad
