// Package stanza judges the tuning stanza of a job file.
//
// Input: a jobfile.Job with its stanza as an unchecked tree of blocks. Output: a
// tuning.Policy with every default filled in, or all errors of the stanza at once, each with
// file, line and column, what was found, what is allowed, and the nearest known word. Own
// returns the settings that the owner chose; Print and PrintLines write a policy back so
// that it parses to the same policy.
//
// Keys is the one table of what a stanza may have. The checks, the suggestions, the page
// REFERENCE.md and LuaTable, the table of Slurm's submission plugin, come from it.
//
// The package never opens a file, never looks at a site's policy, and never accepts what it
// could not print back.
package stanza
