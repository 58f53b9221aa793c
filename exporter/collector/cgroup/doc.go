// Package cgroup reads what the kernel accounts to a job's cgroup: CPU time,
// memory, block IO, pressure, and the size of its cpuset, under v1, v2 and hybrids.
//
// In comes the job's directory in each hierarchy; out come values by column. Where
// several hierarchies know the same thing the finer one is taken (cpu.stat in
// microseconds before cpuacct in ticks). The package never writes to a cgroup.
package cgroup
