// Package cgroup reads what the kernel accounts to a job's cgroup: CPU time,
// memory, block IO, pressure, and how many cores it was given, under v1, v2 and hybrids.
//
// In comes the job's directory in each hierarchy; out come values by column. Where
// several hierarchies know the same thing the finer one is taken (cpu.stat in
// microseconds before cpuacct in ticks). The package never writes to a cgroup.
//
// The cores of a job are those of a cpuset that was written for it, the whole node's
// included; where it shares its CPUs, those of its first process's affinity where that is
// narrower, else its part of them by cpu.weight or cpu.shares of its cgroup and of those
// beside it with processes, as those of Nomad are. Where nobody gave any of them a weight
// nothing is said: to be let on every CPU is no allocation.
package cgroup
