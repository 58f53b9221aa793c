package speed

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// Space is the settings that may be used, as the model sees them.
type Space struct {
	*propose.Candidates
	parts  [][]float64 // of a step's seconds, see partsOf
	memory []float64   // 0: the settings do not say
}

// Names of knobs that say what a setting gives a job, the first that is there: the parts
// of a step depend on these. Of any other knob nothing is known but what was measured.
func coreKnobs() []string   { return []string{tuning.Cores, tuning.Threads} }
func workerKnobs() []string { return []string{"replicas", tuning.GPUs} }
func batchKnobs() []string  { return []string{"local_batch_size", "batch_size"} } // of one worker
func memoryKnobs() []string { return []string{tuning.Memory, "memory_gib"} }

// NewSpace prepares unique settings for models.
func NewSpace(settings []tuning.Settings) *Space {
	s := &Space{}
	var seen []tuning.Settings // with the logarithms of their numbers
	var cores []float64
	for _, x := range settings {
		logs := x.Clone()
		for name, v := range x {
			if n := number(v); n > 0 {
				logs[name] = tuning.Number(math.Log(n))
			}
		}
		if batch := batchKnobs(); x[batch[0]].IsSet() {
			delete(logs, batch[1]) // the batches of the workers tell it
		}
		seen = append(seen, logs)
		s.memory = append(s.memory, first(x, memoryKnobs()))
		if c := first(x, coreKnobs()); c > 0 {
			cores = append(cores, c)
		}
	}
	s.Candidates = propose.Of(seen)
	slices.Sort(cores)
	cores = slices.Compact(cores)
	for _, x := range settings {
		s.parts = append(s.parts, partsOf(x, cores))
	}
	return s
}

// number is that of a value, and of a placement such as 1-3-2 the largest; 0: it is none.
func number(v tuning.Value) float64 {
	if v.IsNumber() {
		return v.Float()
	}
	most := 0.0
	for part := range strings.SplitSeq(v.String(), "-") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return 0
		}
		most = max(most, float64(n))
	}
	return most
}

// first is the number of the first knob of several that has one above 0, else 0.
func first(s tuning.Settings, knobs []string) float64 {
	for _, name := range knobs {
		if v := number(s[name]); v > 0 {
			return v
		}
	}
	return 0
}

// partsOf are the parts of a step's seconds, none negative: a constant; work that cores
// share, all of them or up to so many; work that grows with the batch; and communication
// that grows with workers and nodes. What a setting does not say is 0.
func partsOf(s tuning.Settings, saturated []float64) []float64 {
	inverse := 0.0
	if c := first(s, coreKnobs()); c > 0 {
		inverse = 1 / c
	}
	out := []float64{1, inverse}
	for _, c := range saturated {
		out = append(out, max(inverse-1/c, 0))
	}
	workers := first(s, workerKnobs())
	several, across := 0.0, 0.0
	if workers > 1 {
		several = 1
	}
	if workers > 0 && number(s["nodes"]) > 1 {
		across = 1
	}
	return append(out, first(s, batchKnobs()), several, across, (1-across)*max(workers-1, 0), across*workers)
}
