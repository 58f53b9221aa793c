package api

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
)

const (
	perfEvent  = "perf/"
	perfSchema = "perf/1:"
	// Up to so many characters a schema names its events.
	plainSchema = 80
)

// PerfEvent is the column of a perf event that is not among those of SchemaSoftware:
// "perf/cache-misses". It is scaled up for the time in which its group did not count,
// and missing from a sample where that is not possible yet.
func PerfEvent(name string) string { return perfEvent + name }

// EventOf returns the name of the perf event that a column of PerfEvent counts.
func EventOf(column string) (name string, ok bool) { return strings.CutPrefix(column, perfEvent) }

// PerfEnabled is the column of the time for which a group of perf events was enabled,
// summed over CPUs; PerfRunning of that for which it really counted. Source.Group names
// the groups.
func PerfEnabled(group string) string { return ColPerfEnabled + "/" + group }

// PerfRunning goes with PerfEnabled.
func PerfRunning(group string) string { return ColPerfRunning + "/" + group }

// GroupOf returns the group of a column of PerfEnabled.
func GroupOf(column string) (group string, ok bool) {
	return strings.CutPrefix(column, ColPerfEnabled+"/")
}

// SchemaWith is the schema of samples that have the software events of perf and the
// further events named, in any order. Without events it is SchemaSoftware. It says
// which they are, or where that is too long how many, and a number that is equal where
// they are.
func SchemaWith(events []string) string {
	if len(events) == 0 {
		return SchemaSoftware
	}
	names := slices.Compact(slices.Sorted(slices.Values(events)))
	text := strings.Join(names, ",")
	if len(text) <= plainSchema {
		return perfSchema + text
	}
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(text)) // a hash takes everything
	return fmt.Sprintf("%s%d-events-%016x", perfSchema, len(names), sum.Sum64())
}
