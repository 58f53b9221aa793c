// Package sampler finds jobs, reads their counters on a timer, shares out the node's energy,
// and writes samples to the store.
//
// The input is the jobs of attrib.Scanner, the readings of the collectors and the meter,
// progress marks, and the State of an earlier exporter. The output is samples in the window
// store, a Snapshot of the node, and a State for the next exporter. The package never measures
// on request: readers of the store see what the timer saw.
//
// Jobs are searched for several times a second, so that short ones are seen and perf events
// are opened early. A cgroup that was empty before the exporter began is not a job until a
// process enters it. A job that only an environment names never continues or replaces a job with
// a cgroup or of another user.
//
// The attempt of a Slurm job is Slurm's own count as soon as it is known, else the next free
// number. New cgroups or a higher count end an attempt. A task that Nomad restarts in place
// stays in one attempt, and so does a Slurm job whose cgroups are gone between two steps: its
// samples begin again, its joules and checkpoints go on. Readers
// that can follow a job (collector.Follower) count on when its CPUs or cgroups change.
//
// A mark of an epoch takes a sample of its job at once, up to Config.MarkRate a second, and
// is recorded without one beyond; a mark of a checkpoint is counted. What two processes report
// of the same line counts once (reportLog), and so does a line that a controller reads again.
// After a mark from outside every job the sampler searches again, at most every 100 ms. A mark
// for a job that ended is recorded at its end.
//
// Each interval's energy is shared out by package: by where a job worked (collector.Placed),
// else by what the CPUs of its cpuset did. A job's joules include its graphics cards'; while
// those are unknown the sum is missing, and what they took comes later. The joules on a mark
// are extrapolated from the last tick, and the metrics leave that out; while the meter fails, or
// after three intervals without a reading, they are missing. From when a sum lacks some for good it
// is missing until the job's end, also after a restart; so it is where no exporter ran for a
// minute. A sum is called modelled if a part of
// it is modelled.
//
// Each source has a worker (collector.Worker): if a call makes no progress within two seconds,
// the others go on. The snapshot says since when the source is silent, its columns are missing,
// and what a meter counted meanwhile is in the next interval. While jobs cannot be searched for,
// none ends and none begins, and the sender of a mark is asked to try again.
//
// With Config.Keep the snapshot has the State: a job in the same cgroup of the same boot keeps
// its joules and its count of checkpoints, and attempts that ended stay readable. Config.Journal
// gets the same before the snapshot is shown, so that an exporter that is killed never sets
// joules back.
//
// Everything but Mark, MarkFor and Snapshot belongs to the goroutine of Run.
package sampler
