// Package jobspecs carries the job files that users copy, so that the demo and
// the tests run the very files that are shipped.
//
// SEARCH.md and CHECKPOINT.md show how a program is made searchable and restartable.
//
// Output: a read-only file system with the folders slurm and nomad. The package
// parses and runs nothing.
package jobspecs
