// Package slurm drives the jobs of a Slurm cluster through Slurm's own commands: the jobs of
// one user with that user's rights, or everybody's (Config.Everyone) through a broker.
//
// Input: job files and intents. Output: calls of sbatch, scancel and scontrol; jobs as squeue and
// scontrol show them; and a journal of what Slurm does not keep: which request made which
// job, what its owner asked for before it was changed, and which step of which intent was
// taken. The process may die at any moment, and the next one on the same directory goes on.
//
// The package never acts for another user by itself, never raises a priority, never holds a
// job, never makes a finished job run again, and opens no file but its own and, where it is
// the user's own, a job's output.
//
// Watch takes compact looks at the whole queue; Get and List answer from what it saw while it
// runs. Advance, Check, Outlook and Listen read the job again. The cluster's configuration is
// read where it is needed. A record that cannot be read strictly is an error, never a guess. A
// task of an array is its own job, with the id ARRAY_TASK.
//
// A move is: scancel --signal, wait until the job saved, scontrol requeue Incomplete, scontrol
// update while it waits, scontrol update StartTime=now. The job keeps its number.
//
// DESIGN.md says why each of these is done in this way. TRAPS.md lists what Slurm does that
// no one expects, with the test that shows it.
package slurm
