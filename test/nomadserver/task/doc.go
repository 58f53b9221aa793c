// Package task runs the tasks of a Nomad node as real processes, as the driver raw_exec
// does.
//
// An allocation, its folder and a function for the task's states go in. States come out
// with the events of a real agent, in its words: output, exit code and signal, restarts by
// policy, shutdown_delay, kill_signal and kill_timeout. The process gets Nomad's environment,
// its reserved cores as affinity and, as root with cgroups of version 1, the groups
// /nomad/ALLOCATION.TASK with the memory limit. Templates are rendered before the first
// start, and again when a variable that they read has changed and been quiet for a while.
//
// The package never isolates a task, fetches no artifact, changes no user and rotates no
// log. Templates know env, nomadVar and nomadVarExists, and change_mode restart and noop.
package task
