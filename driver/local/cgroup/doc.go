// Package cgroup confines one attempt of a job: one leaf named
// pitchpipe/<job>.<attempt> in every hierarchy that matters.
//
// Input: a cgroup mount, a name, CPUs and a memory limit. Output: a leaf that
// processes join before they become the job, that tells of out-of-memory kills,
// that is emptied by force and removed. It knows three machines: version 1 with
// controllers mounted one by one, version 2 with one hierarchy at the root, and
// the hybrid of both, where the controllers are version 1 and the unified
// hierarchy, which perf counts by, always gets a leaf too. What a machine does
// not offer is said in Tree, and is not an error.
//
// Leaves of version 1 are made and limited by containerd/cgroups, which knows the
// order in which kernels want this done. All else is plain files: for one counter
// the library reads dozens, for version 2 it takes its mount points from the
// machine rather than from the caller, wants the cpu controller with cpuset, and
// gives up where a kernel has no limit of swap.
//
// Of version 2 the kernel demands that a cgroup other than the real root has
// either processes or children with controllers. The parent has no process of its
// own; a root that is not the real one, as in a container, must have none either,
// and where it has, Tree says so and nothing is confined.
//
// It never touches a leaf that holds processes of somebody else, and never kills
// by process group or name.
package cgroup
