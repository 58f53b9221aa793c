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
// A task that Nomad runs by Docker is in its container's cgroup, docker/<id> or
// <slice>/docker-<id>.scope, whose name says nothing of it; the one that Nomad makes for
// each task is empty beside it and not taken. Docker knows the container as
// <task>-<allocation> and by its labels, but tells only who is as good as root. What tells
// without asking is NOMAD_ALLOC_ID and NOMAD_TASK_NAME in the environment of the
// container's processes, which Nomad gives them: read once for each container, of its
// first process, as a rule within a scan of its start, and only by who may trace processes.
// A task has one container at a time, so that a second that names it is not believed; one
// whose first process gave itself another environment can still name a task that nobody
// runs here. Nothing of a container is believed where environments are turned off.
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
// A scan is cheap, since it is made several times a second: directories that may lead to
// jobs are listed, or where they hold few the known ones asked whether they are still all;
// what a path means is learned once; processes are listed where /proc/loadavg says that one
// may have come or gone, and only those are read that are new or run another program. A
// process is known to be the same by the inode of its /proc directory. What
// that may hide, and where the hierarchies are, is looked at anew with each twentieth scan.
//
// So, with a scan each quarter of a second: a job with a cgroup is found a quarter of a
// second after its cgroup was made, and one whose cgroup was made and removed between two
// scans is not. What its processes do, however short they live, is in the accounts of the
// cgroup. A process without a cgroup is found a quarter of a second after its fork, or
// after the exec by which it became the job's where that follows within half a second,
// within a second where it follows within three, and never where it takes longer; one that
// lives between two scans is seen only by what its parent waited for.
//
// A Scanner is not safe for concurrent use; the sampler owns it.
package attrib
