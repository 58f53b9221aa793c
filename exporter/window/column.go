package window

import "pitchpipe/exporter/api"

// Column describes one column of a sample.
type Column struct {
	Name  string
	Gauge bool // may go down
}

// Columns lists the columns that every ring holds, in their order.
func Columns() []Column {
	return []Column{
		{api.ColUserSeconds, false},
		{api.ColSystemSeconds, false},
		{api.ColCPUSeconds, false},
		{api.ColTaskClock, false},
		{api.ColContextSwitch, false},
		{api.ColMigrations, false},
		{api.ColMinorFaults, false},
		{api.ColMajorFaults, false},
		{api.ColVoluntary, false},
		{api.ColInvoluntary, false},
		{api.ColReadChars, false},
		{api.ColWriteChars, false},
		{api.ColReadBytes, false},
		{api.ColWriteBytes, false},
		{api.ColRSS, true},
		{api.ColCache, true},
		{api.ColPeak, true},
		{api.ColThreads, true},
		{api.ColProcesses, true},
		{api.ColCPUPressure, false},
		{api.ColMemoryPressure, false},
		{api.ColIOPressure, false},
		{api.ColJoules, false},
		{api.ColNodeBusy, false},
		{api.ColNodeSteal, false},
		{api.ColPerfRunning, false},
		{api.ColPerfEnabled, false},
		{api.ColAllocatedCores, true},
	}
}
