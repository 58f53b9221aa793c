package window

import "pitchpipe/exporter/api"

// Column describes one column of a sample.
type Column struct {
	Name  string
	Gauge bool // may go down
	Help  string
}

// Columns lists the columns that every ring holds, in their order.
func Columns() []Column {
	return []Column{
		{api.ColUserSeconds, false, "CPU time in user mode."},
		{api.ColSystemSeconds, false, "CPU time in kernel mode."},
		{api.ColCPUSeconds, false, "CPU time."},
		{api.ColTaskClock, false, "CPU time as perf's task clock counts it."},
		{api.ColContextSwitch, false, "Context switches, counted by perf."},
		{api.ColMigrations, false, "Moves from one CPU to another, counted by perf."},
		{api.ColMinorFaults, false, "Page faults that needed no IO."},
		{api.ColMajorFaults, false, "Page faults that needed IO."},
		{api.ColVoluntary, false, "Context switches that a thread asked for by waiting."},
		{api.ColInvoluntary, false, "Context switches forced on a thread."},
		{api.ColReadChars, false, "Bytes read by system calls, cached or not."},
		{api.ColWriteChars, false, "Bytes written by system calls, cached or not."},
		{api.ColReadBytes, false, "Bytes read from storage."},
		{api.ColWriteBytes, false, "Bytes written to storage."},
		{api.ColRSS, true, "Resident anonymous memory."},
		{api.ColCache, true, "Page cache charged to the job."},
		{api.ColPeak, true, "Largest memory use so far."},
		{api.ColThreads, true, "Threads that live."},
		{api.ColProcesses, true, "Processes that live."},
		{api.ColCPUPressure, false, "Time in which some task waited for a CPU."},
		{api.ColMemoryPressure, false, "Time in which some task waited for memory."},
		{api.ColIOPressure, false, "Time in which some task waited for IO."},
		{api.ColJoules, false, "Energy attributed to the job, its GPUs included."},
		{api.ColNodeBusy, false, "CPU time of the whole node since the job was first seen."},
		{api.ColNodeSteal, false, "CPU time that the hypervisor took since the job was first seen."},
		{api.ColPerfRunning, false, "Time for which perf events counted, summed over CPUs."},
		{api.ColPerfEnabled, false, "Time for which perf events were enabled, summed over CPUs."},
		{api.ColAllocatedCores, true, "Cores that the job was given, by its cpuset, its affinity or its weight."},
	}
}
