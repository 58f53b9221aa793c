package models

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"
)

// The events that every other is measured against.
const (
	eventCycles       = "cycles"
	eventInstructions = "instructions"
)

// million instructions is what events are counted per.
const million = 1e6

// eventOffset is added to an event's count per million instructions before the logarithm
// is taken: what would cost one per cent of the time at one cycle an instruction.
// Below it an event is noise, which a bare logarithm would blow up.
func eventOffset(event string) float64 {
	cycles := 1.0 // that an event takes, about
	switch {
	case strings.HasPrefix(event, "LLC-") && strings.HasSuffix(event, "-misses"), event == "node-loads", event == "node-load-misses":
		cycles = 200
	case strings.Contains(event, "TLB"), strings.Contains(event, "tlb"):
		cycles = 30
	case strings.HasSuffix(event, "-misses"):
		cycles = 20
	case strings.Contains(event, "exception"), strings.Contains(event, "fault"),
		strings.HasSuffix(event, "-switches"), strings.HasSuffix(event, "-migrations"):
		cycles = 1000
	}
	return 0.01 * million / cycles
}

// countFeatures are made of the counts of one stretch of a run: ipc is
// ln(instructions/cycles), and each other event e gives
// ln(offset + 1e6·e/instructions), which hardly depends on the clock. An event that is
// not in counts, negative or no number gives no feature; without instructions there
// are none at all.
func countFeatures(counts map[string]float64) map[string]float64 {
	out := map[string]float64{}
	instructions := counts[eventInstructions]
	if !(instructions > 0) || math.IsInf(instructions, 0) {
		return out
	}
	for event, n := range counts {
		switch {
		case !(n >= 0) || math.IsInf(n, 0), event == eventInstructions, event == eventCycles && n == 0:
		case event == eventCycles:
			out["ipc"] = math.Log(instructions / n)
		default:
			out[event] = math.Log(eventOffset(event) + million*n/instructions)
		}
	}
	return out
}

// countSchema names a set of events, in whatever order: profiles of different sets are not
// compared.
func countSchema(events []string) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(events)))
	h := fnv.New32a()
	_, _ = h.Write([]byte(strings.Join(sorted, ","))) // documented never to fail
	return fmt.Sprintf("hw/1/%d-%08x", len(sorted), h.Sum32())
}
