package speed

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// Names of knobs that say what a setting gives a job, beside those of tuning. Any other
// knob that is a number tells settings apart, and is no part of a step.
const (
	nodes      = "nodes"
	replicas   = "replicas"  // workers over all nodes
	placement  = "placement" // workers on each node, such as 1-3
	batch      = "batch_size"
	localBatch = "local_batch_size" // of one worker
)

func memories() []string { return []string{tuning.Memory, "memory_gib"} }

// point is what the model knows about one setting.
type point struct {
	cores, workers, nodes, busiest, load float64 // 0: the settings do not say; busiest tells placements apart
	memory                               float64
	others                               []float64 // of further numeric knobs, by name
}

func pointOf(s tuning.Settings, others []string) point {
	number := func(name string) float64 {
		if v, ok := s[name]; ok && v.IsNumber() && v.Float() > 0 {
			return v.Float()
		}
		return 0
	}
	first := func(names ...string) float64 {
		for _, name := range names {
			if v := number(name); v > 0 {
				return v
			}
		}
		return 0
	}
	p := point{
		cores: first(tuning.Cores, tuning.Threads), workers: first(replicas, tuning.GPUs), nodes: first(nodes),
		load: first(localBatch, batch), memory: first(memories()...),
	}
	p.busiest = busiest(s[placement].String())
	if p.busiest == 0 && p.nodes > 0 {
		p.busiest = math.Ceil(p.workers / p.nodes)
	}
	for _, name := range others {
		p.others = append(p.others, number(name))
	}
	return p
}

// busiest is the largest number in 1-3-2; 0 where it is no such list.
func busiest(list string) float64 {
	var out float64
	for part := range strings.SplitSeq(list, "-") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 {
			return 0
		}
		out = max(out, float64(n))
	}
	return out
}

// otherKnobs are the numeric knobs that have no meaning here, sorted.
func otherKnobs(space []tuning.Settings) []string {
	known := append(memories(), tuning.Cores, tuning.Threads, replicas, tuning.GPUs, nodes, localBatch, batch, placement)
	found := map[string]bool{}
	for _, s := range space {
		for name, v := range s {
			if v.IsNumber() && !slices.Contains(known, name) {
				found[name] = true
			}
		}
	}
	var out []string
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// parts are the features of a step's seconds, none negative. What a setting does not say is
// zero there, so that all settings have as many.
func (p point) parts(saturated []float64) []float64 {
	cores := 0.0
	if p.cores > 0 {
		cores = 1 / p.cores
	}
	out := []float64{1, cores}
	for _, s := range saturated {
		out = append(out, max(cores-1/s, 0))
	}
	several, across := 0.0, 0.0
	if p.workers > 1 {
		several = 1
	}
	if p.workers > 0 && p.nodes > 1 {
		across = 1
	}
	return append(out,
		max(p.load, 0),
		several,
		across,
		(1-across)*max(p.workers-1, 0),
		across*math.Log2(max(p.workers, 1)),
		across*p.workers,
	)
}

// coordinates are where a setting lies among others: the logarithm of all that it says.
func (p point) coordinates() []float64 {
	out := []float64{ln(p.cores), ln(p.workers), ln(p.nodes), ln(p.busiest), ln(p.load), ln(p.memory)}
	for _, v := range p.others {
		out = append(out, ln(v))
	}
	return out
}

func ln(v float64) float64 {
	if v > 0 {
		return math.Log(v)
	}
	return 0
}
