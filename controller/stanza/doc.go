// Package stanza judges the tuning stanza of a job file.
//
// In comes a jobfile.Job with its stanza as an unjudged tree of blocks, out comes
// a tuning.Policy with every default filled in, or every fault of the stanza at
// once: file, line and column, what stands there, what is allowed, and the nearest
// known word. Own tells the settings that the job's owner chose, Print and
// PrintLines write a policy back so that it reads as the same policy again.
//
// What is known is said once, in Keys: the judging, the suggestions, the reference
// page REFERENCE.md and the table of Slurm's submission plugin, LuaTable, come from
// it. The plugin's own judging is held to this one by test/slurmlua.
//
// The package never opens a file, never looks at a site's policy, and never
// accepts what it could not print back.
package stanza
