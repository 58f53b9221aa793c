package once

import (
	_ "embed" // of the script
	"path"
	"regexp"
	"slices"
)

// Shell runs the wrapper.
const Shell = "/bin/sh"

// Name is the wrapper's own name ($0), which marks a wrapped command.
const Name = "pitchpipe-once"

// Variable names the directory for marks that the author of a job may set.
const Variable = "PITCHPIPE_MARKS"

// script is what the shell runs: $0 is Name, $1 the run, the rest the command. It
// becomes text of a job's configuration, where Nomad replaces a dollar sign or a per
// cent sign with a brace after it: it has none.
//
// The command runs in the background, since a shell handles no signal while a command
// in front of it runs. A background command ignores INT, which Nomad sends where a task
// says nothing else, and QUIT; where env cannot undo that, they are handed on as TERM.
// A wait that a signal ended says nothing of the command and is repeated; the second
// answer counts unless the first had been the command's own.
//
// A command that was asked to end may save and end with 0 after a part of its work: there
// is no mark once TERM, INT, HUP or QUIT was handed on. Where the work ended in that very
// moment it is run again, from its checkpoint.
//
//go:embed once.sh
var script string

// Wrap returns the command line that runs this one once. Run is letters, digits and
// dashes.
func Wrap(run, command string, args []string) (string, []string) {
	return Shell, append([]string{"-c", script, Name, run, command}, args...)
}

// Rewrap is a wrapped command line with other arguments of the same command. The text of
// the wrapper stays as it is, be it that of another version of this program: a job that
// is registered with another text is another job to Nomad.
func Rewrap(wrapped, args []string) []string {
	return append(slices.Clone(wrapped[:5]), args...)
}

// Unwrap returns what Wrap was given, and whether it was Wrap.
func Unwrap(command string, args []string) (run, inner string, rest []string, ok bool) {
	if path.Base(command) != path.Base(Shell) || len(args) < 5 || args[0] != "-c" || args[2] != Name {
		return "", command, args, false
	}
	return args[3], args[4], slices.Clone(args[5:]), true
}

// Run reports whether a text can name a run.
func Run(name string) bool {
	return regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`).MatchString(name)
}
