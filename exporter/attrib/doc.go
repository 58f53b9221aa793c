// Package attrib finds the jobs of a node, and the job that a process belongs to.
//
// Input: the host's cgroup trees and /proc. Output: jobs with their cgroups, processes and users.
// The package never measures anything, never signals or moves a process, and does not decide
// whether a job is new or gone: its caller does.
//
// A cgroup names a job by its path (rules in path.go). Directories count below a hierarchy's
// root, for local jobs also below the exporter's own ancestors; those of schedulers count only
// if each directory on the way is owned as the root is and closed to others. Otherwise the
// owner of a delegated subtree could build another user's job there.
//
// If Slurm makes no cgroups (proctrack/linuxproc), a job is all processes below a step
// daemon: a process of root's that runs root's file slurmstepd (or slurmstepd-…) and is titled
// "slurmstepd: [<job>.<step>]". To see the file takes CAP_SYS_PTRACE. The title also turns an
// SLUID into the job's number.
//
// A requeued Slurm job keeps its id. Its attempt is SLURM_RESTART_COUNT + 1 in the
// environment of its steps, which only the job's own user can forge; until that is
// known, new cgroups (Found.Reborn) tell one start from the next.
//
// A Nomad task that Docker runs is in its container's cgroup. NOMAD_ALLOC_ID and
// NOMAD_TASK_NAME in the environment of the container's first process say which task it is.
// They are read once and only with CAP_SYS_PTRACE; a second container that claims a task is
// ignored. Each allocation is a job with one attempt; a task that is restarted in place stays
// in it.
//
// Other processes belong to the local job that PITCHPIPE_JOB_ID and PITCHPIPE_ATTEMPT in
// their environment name, if Trust believes them. Such a job belongs to the first user
// seen in it. An environment never leads to a job that has a cgroup or a step daemon.
//
// A scan is cheap, since it is made several times a second: what a path means is learned
// once, directories that lead nowhere are read again when their number of links changed, and
// only new processes are read. A process is the same while the inode of its /proc directory
// is. Each twentieth scan takes nothing for granted. With four scans a second a cgroup is
// found within 250 ms, a process without one within 250 ms of its fork, or within a second if
// it becomes the job's by an exec within three seconds.
//
// A Scanner belongs to one goroutine.
package attrib
