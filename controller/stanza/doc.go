// Package stanza judges the tuning stanza of a job file.
//
// A jobfile.Job with its stanza as an unjudged tree of blocks goes in. A tuning.Policy with
// every default filled in comes out, or every fault of the stanza at once: file, line and
// column, what was found, what is allowed, and the nearest known word. Own returns the settings
// that the job's owner chose; Print and PrintLines write a policy back so that it reads as the
// same policy again.
//
// Keys is the one table of what a stanza may say: the judging, the suggestions, the reference
// page REFERENCE.md and the table of Slurm's submission plugin, LuaTable, come from it.
// test/slurmlua compares the plugin with this package.
//
// The package never opens a file, never looks at a site's policy, and never accepts what it
// could not print back.
package stanza
