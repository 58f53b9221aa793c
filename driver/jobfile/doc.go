// Package jobfile holds what every job file says, whatever its format: the Job
// that a driver can run, the tuning stanza as an unjudged tree of blocks, a short hash
// of what is run, and errors that name file, line and column. A Fix holds the changes that
// make a job file run one trial of a search.
//
// Input: bytes. Output: values and positions. The folders below read and fix one format each
// (sbatch scripts, Nomad job files); folder detect picks the format. Nothing here opens a
// file, runs anything, or knows what a knob is: judging the stanza is the work of
// controller/stanza.
package jobfile
