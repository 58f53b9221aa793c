// Package faultnomad injects faults into a Nomad on loopback with controllers that move
// jobs, and counts the outcome of every job: the real agent where nomad is on PATH, else
// the in-process server that behaves like it.
//
// Input: a number of faults and a seed. Output: a table, for each kind of fault how
// often it struck, how many jobs it touched, and how many of them did their work exactly
// once. Every job keeps its own journal, which knows of each epoch and each attempt; the
// verdict is the journal's and Nomad's, never the controller's. Two controllers run, each
// the pitchpipe program as it ships and each for its own namespace. Each reaches Nomad
// through a proxy, at which it is struck: before a request of a move is passed on, after it
// and before the answer, and after the answer. A fault that met no job in the middle of
// anything is not counted. The next round begins while the last one's jobs come to their
// end; each round is a line on standard error.
//
// Half of the jobs have the completion marker and half have not, as after a plain "nomad
// job run". With it no work is done again, but for what comes to its end in the very moment
// in which Nomad tells it to end. Without it Nomad's compare-and-set does not see that a job
// has just finished, and the work begins again: such a run may work for two seconds at
// most, less the time in which the harness had its controller or the agent down, and is to
// be reported. The table also prints the time from when Nomad could begin it, which is when
// it knows of the job's end, until it was over. That time includes the connections that the
// harness cut.
//
// A client of the agent that is killed between the start of a task and its own record of
// that starts the task again, next to the first. Such a job, by its own journal and by what
// was being started at that time, is Nomad's own and has its own column.
//
// What cannot be done to the server in this process (its client alone killed, its node not
// eligible) is left out there, and the test says so. It never judges how well a job was
// tuned.
package faultnomad
