// Package sbatch reads Slurm batch scripts: the #! line, the #SBATCH options,
// the #TUNE lines of the tuning stanza, and the variables that the script sets
// at its top.
//
// Input: the bytes of a script. Output: a jobfile.Job, or every fault of the script with line and
// column; the output of Fix is the script with values for its variables. The package never runs or
// expands anything, never judges the stanza, and never drops an option silently that would change
// what the job does: what cannot be honoured outside Slurm is refused with the reason.
//
// # Where lines count
//
// #SBATCH and #TUNE lines count before the first command, at the start of a
// line. A #TUNE line that is indented or after the first command is an error, because otherwise the
// job would silently stay untuned. A comment that only looks like one, such as "# TUNE mode=apply"
// or "#Tune mode=apply", is a warning.
//
// # The stanza
//
// "#TUNE key=value ..." sets keys of the top level, "#TUNE knob NAME key=value
// ..." those of a knob, "#TUNE BLOCK key=value ..." those of another block.
// Several lines for the same block add to it. A value is bare, in single quotes
// (literal) or in double quotes (\" and \\ are the only escapes); commas outside
// of quotes separate the elements of a list. Nothing is expanded, and no line is
// continued. Text is normalised to Unicode NFC, as in job files of the other
// format.
//
// # Variables
//
// Job.Env holds what can be read without running: from the top on, comments,
// blank lines, assignments (with and without export), and lines that begin with
// set, ulimit, umask, cd, module, : or true are read; the first other line ends
// the reading. A value is read if it is a literal (bare, in single quotes, or in
// double quotes without $ ` and \), or ${NAME:-default} or ${NAME-default}, whose
// default is taken for NAME too. ": ${NAME:=default}" counts as well. Any other
// value makes its variable unknown. Job.Fixed names the variables whose value
// the script sets to a literal, whatever the environment holds, and Job.Computed
// those that it takes from elsewhere. Job.Follow names those that it takes from
// $SLURM_CPUS_PER_TASK, be it only where the environment has none.
package sbatch
