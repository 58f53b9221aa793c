// Package cgroup confines one attempt of a job: one leaf named
// pitchpipe/<job>.<attempt> in every hierarchy that matters.
//
// A cgroup mount, a name, CPUs and a memory limit go in; a leaf comes out that processes join
// before they become the job, that counts out-of-memory kills, that is emptied by force and
// removed. Three kinds of machine are known: version 1 with controllers mounted one by one,
// version 2 with one hierarchy at the root, and the hybrid of both, where the controllers are
// version 1 and the unified hierarchy, which perf counts by, always gets a leaf too. Tree
// says what a machine does not offer; that is not an error. It only reads and writes files of
// the mount, so that a plain folder can stand for it in tests.
//
// In version 2 the kernel demands that a cgroup other than the real root has either processes
// or children with controllers. The parent has no processes. A root that is not the real one,
// as in a container, must have none either: if it has, Tree says so and nothing is confined.
//
// The package never touches a leaf that holds processes of others, and never kills
// by process group or name.
package cgroup
