// Package attrib tells which job a cgroup, a process or a report belongs to.
//
// In come the host's cgroup trees, /proc, and process ids; out come jobs with the
// directories and processes that are theirs, and the one job that a process is in.
// The package never measures anything, never signals or moves a process, and keeps
// no history beyond what it takes to know a thing again: whether a job is new or
// gone is for its caller to say.
//
// A cgroup names a job by its path alone (ParsePath, pure): pitchpipe/<id>.<attempt>
// for local jobs, slurm…/uid_U/job_J and slurmstepd.scope/job_J (or an SLUID) for
// Slurm, nomad.slice/… and nomad/… for Nomad. Only directories below a hierarchy's
// root count, and for a scheduler's jobs only where every directory on the way is
// owned as that root is and closed to others; for local jobs also those below the
// exporter's own ancestors. Whoever was given a subtree of his own could otherwise
// build another's job there.
//
// Where Slurm makes no cgroups (proctrack/linuxproc), a job is all processes below a
// step daemon, which is a process of root's that runs a file slurmstepd (or slurmstepd-…) of root's
// and is titled "slurmstepd: [<job>.<step>]"; a title alone is nothing, and
// SLURM_JOB_ID in an environment is less. They are the processes that scontrol
// listpids prints, for which nothing has to be started. To see what file a process
// runs takes CAP_SYS_PTRACE. The daemon's title is also what turns an SLUID into the job's
// number, the one that squeue prints as its job id (%A); a name whose number nobody
// tells within some scans stays the id.
//
// A requeued Slurm job keeps its id. Which attempt runs is SLURM_RESTART_COUNT + 1 in
// the environment of its batch step, which only the job's own user can forge, and
// that its cgroups were made anew (Found.Reborn) tells one start from the next before
// that is known.
//
// Each allocation of Nomad is a job of its own with one attempt. A task that its client
// restarts in place keeps its cgroups, as those of raw_exec do under v1, or gets them anew
// (Found.Reborn); either way it stays in that attempt.
//
// Processes that are in no such cgroup and below no step daemon belong to the local
// job that PITCHPIPE_JOB_ID and PITCHPIPE_ATTEMPT in their environment name, if Trust
// says that they are believed: by default only those of the exporter's own user,
// since everybody can write an environment. Such a job belongs to the user who was
// seen in it first, and others' processes do not count. An environment never leads
// to a job that has a cgroup or a step daemon.
//
// A Scanner is not safe for concurrent use; the sampler owns it.
package attrib
