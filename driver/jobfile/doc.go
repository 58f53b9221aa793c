// Package jobfile holds what every job file says, whatever its format: the Job
// that a driver can run, the tuning stanza as an unjudged tree of blocks, and
// errors that name file, line and column.
//
// Its folders read one format each (sbatch scripts, Nomad job files); folder detect
// picks the format. Input: bytes. Output: values and
// positions. Nothing here opens a file, runs anything, or knows what a knob is:
// judging the stanza is the work of controller/stanza.
package jobfile
