// Package attrib tells which job a cgroup, a process or a report belongs to.
//
// In come the host's cgroup trees, /proc, and process ids; out come jobs with the
// directories and processes that are theirs, and the one job that a process is in.
// The package never measures anything, never signals or moves a process, and keeps
// no history: whether a job is new or gone is for its caller to say.
//
// A cgroup names a job by its path alone (ParsePath, pure): pitchpipe/<id>.<attempt>
// for local jobs, slurm…/uid_U/job_J and slurmstepd.scope/job_J (or an SLUID) for
// Slurm, nomad.slice/… and nomad/… for Nomad. Only directories below a hierarchy's
// root, or below the exporter's own ancestors, count: whoever was given a subtree of
// his own could otherwise build another's job there. Processes outside such cgroups
// belong to the job that PITCHPIPE_JOB_ID and PITCHPIPE_ATTEMPT in their environment
// name; since anybody can write an environment, such a job belongs to the user who
// was seen in it first, and others' processes do not count. An environment never
// leads to a job that has a cgroup.
//
// A Scanner is not safe for concurrent use; the sampler owns it.
package attrib
