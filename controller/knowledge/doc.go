// Package knowledge keeps what jobs taught, and whatever else of the controller must survive it.
//
// Input: observations, one per job and role, kept raw. Output: what they say about a kind or class of
// jobs. It is derived on request and never stored, so that classes can be fitted again. Effects are
// log ratios within one job, so that a small input does not look like a fast setting. A job also
// learns from jobs of its kind with other hyperparameters, by a line over the logarithm of the work of
// their epochs: data says which hyperparameters change the work, not their names. Old observations
// count for less, and are deleted when they count for nothing. Other users' observations reach a job only through a class, and
// then only as system knobs. What older versions did not write is unknown: neither zero nor a failure.
//
// Store is one bbolt file: a write is on disk when the call returns, whole or not at all, and one
// process has the file open. It also has named buckets for the controller's durable records. It is
// safe for concurrent use; what it returns is shared and must not be modified. Where several
// controllers share their knowledge (Mirror), the file is a working copy: a change is written to
// the mirror first, and the file refuses what the mirror refuses.
//
// The package never decides, never measures, and never talks to a scheduler or an exporter.
package knowledge
