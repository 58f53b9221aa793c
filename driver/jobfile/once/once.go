package once

import (
	"path"
	"slices"
	"strings"
)

// Shell runs the wrapper.
const Shell = "/bin/sh"

// Name is the wrapper's own name ($0), by which a wrapped command is known.
const Name = "pitchpipe-once"

// Variable names the directory for marks that the author of a job may set.
const Variable = "PITCHPIPE_MARKS"

// script is what the shell runs: $0 is Name, $1 the run, the rest the command. It
// becomes text of a job's configuration, where Nomad replaces a dollar sign or a per
// cent sign with a brace behind it: it has none.
//
// The command runs in the background, since a shell handles no signal while a command
// in front of it runs. A background command ignores INT, which Nomad sends where a task
// says nothing else, and QUIT; where env cannot undo that, they are handed on as TERM.
// A wait that a signal ended tells nothing of the command and is repeated; the second
// answer counts unless the first had been the command's own.
//
// A command that was told to end may save and end with 0, and has done a part of its work:
// once TERM, INT, HUP or QUIT was handed on there is no mark. Where the work ended in that
// very moment it is run again, from its checkpoint.
const script = `r=$1 c=$2; shift 2
n=pitchpipe-done-$r-$(printf %s "$NOMAD_JOB_ID" | tr -c A-Za-z0-9 _)-$NOMAD_ALLOC_INDEX
a=$NOMAD_ALLOC_DIR o=$PITCHPIPE_MARKS p= l= w= d=
for m in "$o/$n" "$a/data/$n" "$a"/../../*/alloc/data/"$n"; do
  if [ -f "$m" ]; then echo "pitchpipe: the work of this run is done ($m), it is not done again" >&2; exit 0; fi
done
case $c in
/*) ;;
*) for x in "$NOMAD_TASK_DIR/$c" "$NOMAD_TASK_DIR/../$c"; do if [ -f "$x" ]; then c=$x; break; fi; done ;;
esac
e="env --default-signal=INT,QUIT" i=INT q=QUIT
case $c in *=*|-*) e= ;; esac
if [ -z "$e" ] || ! $e true 2>/dev/null; then e= i=TERM q=TERM; fi
k() {
  w=1; if [ "$p" ]; then kill -"$1" "$p" 2>/dev/null || return 0; else l=$1; fi
  case $1 in TERM|INT|HUP|QUIT) d=$1 ;; esac
}
trap "k $i" INT; trap "k $q" QUIT
for s in TERM HUP USR1 USR2 WINCH CONT; do trap "k $s" "$s"; done
$e "$c" "$@" &
p=$!
if [ "$l" ]; then kill -"$l" "$p" 2>/dev/null; fi
w=; wait "$p"; s=$?
while [ "$w" ]; do
  w=; kill -0 "$p" 2>/dev/null; g=$?
  wait "$p"; t=$?
  if [ "$g" = 0 ] || [ "$t" != 127 ]; then s=$t; fi
done
if [ "$s" = 0 ] && [ "$d" ]; then
  echo "pitchpipe: ended after SIG$d, which may be before its work was done: no mark" >&2
elif [ "$s" = 0 ]; then
  if [ "$o" ]; then mkdir -p "$o"; fi
  for m in "$o" "$a/data"; do
    if [ "$m" ] && [ -d "$m" ]; then true >"$m/$n" || echo "pitchpipe: no mark in $m" >&2; fi
  done
fi
exit "$s"
`

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

// Run tells whether a text can name a run.
func Run(name string) bool {
	return name != "" && len(name) <= 64 && !strings.ContainsFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-'
	})
}
