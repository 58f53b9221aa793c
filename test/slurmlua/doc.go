// Package slurmlua tests what a site installs for Slurm, scripts/slurm: the
// submission plugin in Lua and the task prolog.
//
// In: batch scripts, good and faulty ones, the corpus of controller/stanza and
// random ones; the plugin must come to the same verdict at the same places as
// `pitchpipe validate`, must touch nothing but what it says, and must survive
// faults of its own. The prolog is run as several users against files that it must
// refuse, and in a running Slurm with a node's exporter, where it starts a copy of the
// test's own program as the listener. Nothing here is imported by other packages.
package slurmlua
