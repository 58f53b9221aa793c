// Package cgroup reads what the kernel accounts to a job's cgroup: CPU time, memory, block
// IO, pressure, and how many cores it was given, under v1, v2 and hybrids.
//
// The input is the job's directory in each hierarchy; the output is values by column. Where
// several hierarchies know the same, the finer one is read (cpu.stat in microseconds before
// cpuacct in ticks). Of a job whose CPU time did not change only each eighth reading is whole.
// The package never writes to a cgroup.
//
// The cores of a job are those of a cpuset that was written for it. Where it shares its CPUs,
// they are those of its first process's affinity where that is narrower, else its share by
// cpu.weight or cpu.shares among the sibling cgroups with processes, as those of Nomad. Where
// no sibling was given a weight, the number is missing: to be allowed on every CPU is no
// allocation.
package cgroup
