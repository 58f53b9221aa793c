// Package cgroup reads what the kernel accounts to a job's cgroup: CPU time, memory, block
// IO, pressure, and how many cores it was given, under v1, v2 and hybrids.
//
// Input: the job's directory in each hierarchy. Output: values by column. If several hierarchies
// know the same, the finer one is read (cpu.stat in microseconds before cpuacct). If a job's
// CPU time did not change, only each eighth reading is whole. The package never writes to a
// cgroup.
//
// The cores of a job are those of a cpuset that was written for it. If it shares its CPUs,
// they are those of its first process's affinity if that is narrower, else its share by
// cpu.weight or cpu.shares among the sibling cgroups with processes, as those of Nomad. If
// no sibling was given a weight, the number is missing: permission to use every CPU is not
// an allocation.
package cgroup
