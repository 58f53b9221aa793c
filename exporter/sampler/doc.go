// Package sampler is the exporter's heart: one goroutine that finds jobs, reads
// their counters on its own timer, attributes the node's energy, and writes it all
// to the store.
//
// In come what the scanner finds, what the collectors read, what an earlier one left, and marks of epochs
// that ended; out go samples to the window store and a snapshot of the node. Jobs
// are looked for several times a second, so that a short one is seen and its perf
// events are opened early. A cgroup that was empty before the exporter began, such as one
// that a killed scheduler left, is no job until somebody comes. A mark takes a snapshot of its job at once, at most so
// many a second; a mark above that is recorded without one. A mark from outside
// every job makes the sampler look again, though not more often than every 100 ms.
// A mark of a checkpoint is counted and nothing more. What one process told and
// another repeats (two listeners on one output) is dropped: the same numbers for the
// newest epoch, an older epoch, a checkpoint within two seconds. One process may tell
// the same again: a job may report several times within an epoch. A mark on a job's
// behalf, from outside it, names the job; its teller counts the lines of the output, so
// that reading an output anew repeats nothing, and what came with the job's last breath
// stands at its end.
//
// A job that only the environment of processes names is a claim: it never goes on
// with a job of a cgroup or of another user, nor replaces one that ended, and it
// ends where another user's cgroup comes under its name.
//
// An attempt of a Slurm job has the number that Slurm counts, as soon as the scanner
// knows it, and until then the next one that is free here. When its cgroups are made
// anew or the count goes on, the attempt has ended and another began; a report that
// comes before a scan has seen the new cgroups makes the sampler look. A task that Nomad
// restarts in place stays in the one attempt of its allocation; where its cgroups are
// made anew its samples begin anew, and it keeps its joules and the count of its
// checkpoints. When a job's
// CPUs or cgroups change, readers that can (collector.Follower) go on counting.
//
// What the snapshot says about jobs (Config.Keep) lets the next sampler go on: a job
// in the same cgroup of the same boot keeps its joules and the count of its checkpoints, and attempts that ended stay
// readable. Its other counters begin anew, and so does its time of start.
//
// The energy of each interval is shared out on each package by itself, by what perf's
// readers say of where a job worked (collector.Placed), else by what the CPUs of its cpuset
// did. A job's joules include those of its graphics cards; while these are not known, the
// sum is missing from its samples, and what they took meanwhile is added when they are. A
// sum is called modelled where a part of it is, be it one that an earlier exporter counted.
// A meter whose counters begin anew too soon is read between the ticks as well.
//
// Each source, the meter, the search for jobs and the node's own figures too, has a worker
// (collector.Worker): where a call makes no step within two seconds, the others go on. The
// snapshot says since when the source is silent, its columns are missing, and what a meter
// counted meanwhile is in the interval after. While jobs cannot be searched for, none ends
// and none begins, and the sender of a mark is asked to try again.
//
// Nothing is measured on request: readers of the store see what the timer saw. The
// joules on the snapshot of a mark are carried forward from the last tick at the
// last interval's rates; the next tick sets them right. While the meter fails, or where its
// last reading is three intervals old, the joules are missing from samples and marks; the
// snapshot names the meter as down with the reason, and the log says each change once.
// Where the meter counts graphics cards too that are not read any more, what they take is
// guessed for half a minute; after that the joules are missing until they are read again.
//
// What the next exporter has to know is handed to a journal at each tick, before the
// snapshot shows it: one that is killed sets no job's joules back.
//
// Everything but Mark and Snapshot belongs to the goroutine of Run, calls of sources apart.
package sampler
