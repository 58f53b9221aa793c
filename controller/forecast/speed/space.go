package speed

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// Space is the settings that may be used, as the model sees them.
type Space struct {
	settings []tuning.Settings
	index    map[string]int // of settings, by key
	axes     []axis
	at       [][]float64 // where each setting lies on each axis, from 0 to 1
	parts    [][]float64 // of a step's seconds, see partsOf
	memory   []float64   // 0: the settings do not say
}

// axis is one thing in which settings differ: the logarithm of a number, or whether a knob
// has a word.
type axis struct {
	knob, word string
	law        bool    // a part of a step says what it does
	middle     float64 // mean over the space
	width      float64 // of the space before it was brought to 0 to 1; 1 where all settings agree
}

// Names of knobs that say what a setting gives a job, the first that is there: the parts
// of a step depend on these. Of any other knob nothing is known but what was measured.
func coreKnobs() []string   { return []string{tuning.Cores, tuning.Threads} }
func workerKnobs() []string { return []string{"replicas", tuning.GPUs} }
func batchKnobs() []string  { return []string{"local_batch_size", "batch_size"} } // of one worker
func memoryKnobs() []string { return []string{tuning.Memory, "memory_gib"} }

// NewSpace prepares settings for models; equal ones are one.
func NewSpace(settings []tuning.Settings) *Space {
	s := &Space{index: map[string]int{}}
	values := map[string]map[tuning.Value]bool{}
	var cores []float64
	for _, x := range settings {
		if _, ok := s.index[x.Key()]; ok {
			continue
		}
		s.index[x.Key()] = len(s.settings)
		s.settings = append(s.settings, x)
		s.memory = append(s.memory, first(x, memoryKnobs()))
		cores = append(cores, first(x, coreKnobs()))
		for name, v := range x {
			if values[name] == nil {
				values[name] = map[tuning.Value]bool{}
			}
			values[name][v] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if batch := batchKnobs(); name == batch[1] && len(values[batch[0]]) > 0 {
			continue // the batches of the workers tell it
		}
		s.axes = append(s.axes, axesOf(name, slices.Collect(maps.Keys(values[name])))...)
	}
	slices.Sort(cores)
	cores = slices.DeleteFunc(slices.Compact(cores), func(c float64) bool { return c == 0 })
	for _, x := range s.settings {
		s.parts = append(s.parts, partsOf(x, cores))
		at := make([]float64, len(s.axes))
		for j, a := range s.axes {
			at[j] = a.of(x)
		}
		s.at = append(s.at, at)
	}
	for j := range s.axes {
		low, high := math.Inf(1), math.Inf(-1)
		for _, x := range s.at {
			low, high = min(low, x[j]), max(high, x[j])
		}
		s.axes[j].width = cmp.Or(high-low, 1)
		for _, x := range s.at {
			x[j] = (x[j] - low) / s.axes[j].width
			s.axes[j].middle += x[j] / float64(len(s.at))
		}
	}
	return s
}

// Settings are those of the space, in their order.
func (s *Space) Settings() []tuning.Settings { return s.settings }

// axesOf is the one axis of a knob of numbers, or one for each word.
func axesOf(knob string, values []tuning.Value) []axis {
	law := slices.Contains(slices.Concat(coreKnobs(), workerKnobs(), batchKnobs(), memoryKnobs(), []string{"nodes", "placement"}), knob)
	if !slices.ContainsFunc(values, func(v tuning.Value) bool { return v.IsSet() && !(number(v) > 0) }) {
		return []axis{{knob: knob, law: law}}
	}
	var out []axis
	for _, v := range values {
		out = append(out, axis{knob: knob, word: v.String()})
	}
	slices.SortFunc(out, func(a, b axis) int { return strings.Compare(a.word, b.word) })
	return out
}

func (a axis) of(s tuning.Settings) float64 {
	v := s[a.knob]
	switch {
	case a.word != "" && v.String() == a.word:
		return 1
	case a.word == "" && number(v) > 0:
		return math.Log(number(v))
	}
	return 0
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
	return append(out, first(s, batchKnobs()), several, across,
		(1-across)*max(workers-1, 0), across*math.Log2(max(workers, 1)), across*workers)
}
