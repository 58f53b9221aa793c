// Package identity reports whether two job files run the same thing on other
// inputs or under other settings.
//
// Input: a script or a command line. Output: a short hash that is equal for
// both. What is left out: comments, blank lines, values of assignments, values
// of flags, numbers, redirections, and arguments that look like files. What is
// kept: the programs, the scripts that interpreters run, subcommands, the names
// of flags and variables, and their order.
//
// It is a heuristic on text that errs towards "another thing": then a job is
// profiled once more, while a wrong "same" would give it the settings of a
// stranger. It never runs or expands anything.
package identity
