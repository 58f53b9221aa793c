// Package stanza judges the tuning stanza of a job file.
//
// Input: a jobfile.Job with its stanza as a tree of blocks. Output: a tuning.Policy with
// every default filled in, or every fault of the stanza at once: file, line and column, what
// was found, what is allowed, and the nearest known word. Own returns the settings that the
// job's owner chose. Print writes a policy back; read again, it is the same.
//
// Keys is the one table of what a stanza may say. Reading, printing, errors, suggestions, the
// reference page REFERENCE.md and the key table of Slurm's submission plugin use it.
// test/slurmlua compares the plugin with this package.
//
// The package never opens a file, never looks at a site's policy, and never accepts what it
// could not print back.
package stanza
