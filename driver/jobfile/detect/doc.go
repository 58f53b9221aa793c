// Package detect picks the format of a job file, and reads or rewrites it.
//
// Input: a file name, bytes and the values of variables. Output: a jobfile.Job, or the text
// with what a jobfile.Fix changes. A name that
// ends in .nomad or .hcl is a Nomad job file, for Nomad itself one in .json a job as its API
// shows it; otherwise a first line with #!, or a line that begins with #SBATCH or #TUNE, makes
// a batch script. Anything else is an error that names both formats: the package never guesses.
package detect
