package evaluate

import (
	"slices"

	"pitchpipe/exporter/api"
)

// Gauge reports whether a column of samples holds what was at that time. Every other
// column of the exporter counts.
func Gauge(column string) bool {
	return slices.Contains([]string{
		api.ColRSS, api.ColCache, api.ColPeak, api.ColThreads, api.ColProcesses, api.ColAllocatedCores, api.ColGPUMemory, api.ColGPUs,
	}, column)
}
