package replay

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"

	"pitchpipe/controller/evaluate"
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
	for _, name := range tuning.Knobs(seen) { // where a setting lacks a knob, nothing lies between: its values are words
		for _, x := range seen {
			if !x[name].IsSet() {
				x[name] = tuning.Word("")
			}
		}
	}
	s.Candidates = propose.Of(seen)
	slices.Sort(cores)
	cores = slices.Compact(cores)
	s.parts = tuning.Each(settings, func(x tuning.Settings) []float64 { return partsOf(x, cores) })
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
	name, _ := tuning.First(knobs, func(name string) bool { return number(s[name]) > 0 })
	return number(s[name])
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

// ErrSamples marks samples that no model can be made of. Samples are the seconds of a step by setting, above 0, the mean
// of several measurements; +Inf: the job could not run, presumably for lack of memory.
var ErrSamples = errors.New("invalid samples")

const (
	ridge   = 0.01 // holds back all parts but the constant, and those that the samples cannot tell apart share what they explain
	atLeast = 0.05 // of the shortest step measured: where no part speaks of a setting, it is not a step of no time
)

// Forecast is the seconds of a step under each setting of the space: as measured, else estimated by those that were; at least
// one of them ran. +Inf: the job is expected to fail.
func (s *Space) Forecast(samples map[int]float64) ([]float64, error) {
	ceiling, least := 0.0, math.Inf(1) // memory that is too little; seconds that no part's absence goes below
	var ran []int
	for _, i := range slices.Sorted(maps.Keys(samples)) {
		switch v := samples[i]; {
		case math.IsInf(v, 1):
			ceiling = max(ceiling, s.memory[i])
		case !(v > 0):
			return nil, fmt.Errorf("%w: %g seconds under setting %d: want more than 0", ErrSamples, v, i)
		default:
			ran, least = append(ran, i), min(least, atLeast*v)
		}
	}
	if len(ran) == 0 {
		return nil, fmt.Errorf("%w: none of %d ran", ErrSamples, len(samples))
	}
	rows := tuning.Each(ran, func(i int) []float64 {
		return floats.ScaleTo(make([]float64, len(s.parts[i])), 1/samples[i], s.parts[i]) // errors are relative
	})
	weights := share(rows)
	trend := func(i int) float64 { return max(floats.Dot(s.parts[i], weights), least) }
	left := tuning.Each(ran, func(i int) float64 { return math.Log(samples[i] / trend(i)) })
	rest, err := s.Expect(ran, left)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSamples, err)
	}
	return tuning.Each(evaluate.Indices(s.parts), func(i int) float64 {
		v, measured := samples[i]
		switch {
		case measured:
			return v
		case s.memory[i] > 0 && s.memory[i] <= ceiling:
			return math.Inf(1)
		}
		return trend(i) * math.Exp(rest[i])
	}), nil
}

// share finds weights of columns, none below 0, that bring the sum of each row nearest to 1,
// one column at a time until they settle: non-negative least squares with a ridge.
func share(rows [][]float64) []float64 {
	const sweeps = 2000
	weights, left := make([]float64, len(rows[0])), make([]float64, len(rows))
	floats.AddConst(1, left)
	for range sweeps {
		moved := 0.0
		for j, w := range weights {
			slope, curve := 0.0, 0.0
			for i, r := range rows {
				slope, curve = slope+left[i]*r[j], curve+r[j]*r[j]
			}
			if curve == 0 {
				continue
			}
			if j > 0 { // the constant comes first
				slope, curve = slope-ridge*w*curve, (1+ridge)*curve
			}
			step := max(slope/curve, -w)
			weights[j] += step
			for i, r := range rows {
				left[i] -= step * r[j]
			}
			moved = max(moved, math.Abs(step)*math.Sqrt(curve))
		}
		if moved < 1e-9 {
			break
		}
	}
	return weights
}

// confirm: one in so many of the budget tries what the model says is fastest.
const confirm = 2

// Next is the setting of the space to measure next, given those measured so far, of
// budget in all; false: all are measured. The first is where every resource is largest;
// then those farthest from all measured, which keeps off the diagonal; and with the
// second half of the budget the fastest by the model is tried, as long as it is not
// measured yet. rate is how much a setting does in seconds of a step: batches differ; in endless ones it is 0. The
// least memory is left out until all else is known: a run that does not fit teaches little.
func (s *Space) Next(samples map[int]float64, budget int, rate func(setting int, seconds float64) float64) (int, bool) {
	open := s.open(samples)
	switch {
	case len(open) == 0:
		return 0, false
	case len(samples) == 0:
		return most(open, func(i int) float64 { return floats.Sum(s.Points[i]) }), true
	}
	if seconds, err := s.Forecast(samples); err == nil && len(samples) >= budget-budget/confirm {
		speed := func(i int) float64 { return rate(i, seconds[i]) }
		known := 0.0
		for i := range samples {
			known = max(known, speed(i))
		}
		if i := most(open, speed); speed(i) > known {
			return i, true
		}
	}
	return most(open, func(i int) float64 {
		near := math.Inf(1)
		for sample := range samples {
			near = min(near, s.Distance(s.Points[i], s.Points[sample]))
		}
		return near
	}), true
}

// most is the first of the settings with the greatest number.
func most(settings []int, of func(int) float64) int {
	best, _ := evaluate.Least(settings, func(i int) float64 { return -of(i) })
	return best
}

// open are the settings without a sample, without those of the least memory while there
// are others.
func (s *Space) open(samples map[int]float64) []int {
	rest := evaluate.Only(evaluate.Indices(s.memory), func(i int) bool { _, measured := samples[i]; return !measured })
	if above := evaluate.Only(rest, func(i int) bool { return s.memory[i] > slices.Min(s.memory) }); len(above) > 0 {
		return above
	}
	return rest
}
