// Package slurmlua tests what a site installs for Slurm, scripts/slurm: the submission
// plugin in Lua and the task prolog.
//
// Batch scripts go in, those of the corpus of controller/stanza and random ones. The plugin
// has to find the faults that it looks for where `pitchpipe validate` finds them, and no
// others; it has to mark a job as a submission without it does; and it has to survive its
// own errors. The prolog runs as several users against files that it must refuse, and in a
// running Slurm with a node's exporter. No package imports this one.
package slurmlua
