// Package knowledge keeps what jobs taught, and whatever else of the controller
// must survive it.
//
// It takes observations, one per job and role: its kind, its machine, its profiles, the
// settings it ran under with what was measured under each, and the outcome of its move.
// They are kept raw. What they say of a kind or class of jobs (effects of settings, memory,
// harm, restarts, past runs) is derived from them and a time when asked for, and never
// stored, so that classes can be fitted anew at any time.
//
// Effects are log ratios within one job, against that job's own other settings,
// so that a small input does not look like a fast setting. Old observations
// count for less; none is forgotten by itself. Other users' observations reach a
// job only through a class, and then only as system knobs. What older versions did not
// write is not known, which is neither zero nor a failure.
//
// Store is one bbolt file: every write is on disk when the call returns, a write
// is whole or not there, and only one process has the file open. The file also
// has a general area of named buckets for the controller's durable records.
// Store is safe for concurrent use; what it returns is shared and must not be
// modified.
//
// Where several controllers share their knowledge (Mirror), the file is a working copy:
// each change is written to the mirror first, and the file refuses what the mirror refuses.
// Adopt loads the mirror when a controller begins to lead.
//
// The package never decides what to do with a job, never measures, and never
// talks to a scheduler or an exporter.
package knowledge
