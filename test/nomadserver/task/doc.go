// Package task runs the tasks of test/nomadserver's node as real processes, as Nomad's
// client does with its drivers raw_exec and exec.
//
// In come an allocation, the folder for it and what to call when the task's state
// changes; out come states with the events of a real agent, in its words: what the
// task wrote, its exit code and signal, restarts by the group's policy, shutdown_delay,
// kill_signal and kill_timeout. The process has the environment that Nomad gives, a
// session of its own, the cores that were reserved as its affinity and, where this runs
// as root with cgroups of version 1, groups /nomad/ALLOCATION.TASK in the hierarchies
// cpu, freezer and memory, with the memory limit in force. Whatever the process leaves
// behind is killed when it ends. The driver mock_driver knows run_for, exit_code and
// start_error.
//
// Templates are rendered before the first start and again when a variable that they read
// has changed and been quiet for the time that the template says, 5 s where it says none;
// then change_mode restart restarts the task in place, and the next start has what the
// file says. They know env, nomadVar, nomadVarExists and what Go's templates know.
//
// Left out: artifacts (refused by Start), change modes other than restart and noop, other
// functions of templates, the isolation of exec (a task of
// exec sees the machine as one of raw_exec does), cpuset groups, rotation of logs, and
// cgroups of version 2. The real agent kills its tasks' remains through the cgroup;
// where there is none they are found here by NOMAD_ALLOC_ID in their environment.
package task
