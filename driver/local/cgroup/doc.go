// Package cgroup confines one attempt of a job: one leaf named
// pitchpipe/<job>.<attempt> in every hierarchy that matters.
//
// In come a cgroup mount, a name, CPUs and a memory limit; out comes a leaf that
// processes join before they become the job, that tells of out-of-memory kills,
// that is emptied by force and removed. It knows three machines: version 1 with
// controllers mounted one by one, version 2 with one hierarchy at the root, and
// the hybrid of both, where the controllers are version 1 and the unified
// hierarchy, which perf counts by, always gets a leaf too. What a machine does
// not offer is said in Tree, and is not an error.
//
// Leaves are made and limited by containerd/cgroups, which knows the order in
// which kernels want this done. Killing, out-of-memory counters and the leaf of
// the unified hierarchy are plain files: the library reads dozens of files for
// one counter, and takes its mount points for version 2 from the machine rather
// than from the caller.
//
// It never touches a leaf that holds processes of somebody else, and never kills
// by process group or name.
package cgroup
