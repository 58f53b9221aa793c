package record

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/controller/tuning"
)

// Cell is one run of the plan.
type Cell struct {
	ID       string            `json:"id"` // names the run, in letters that a file name may have
	Workload string            `json:"workload"`
	Input    int               `json:"input"` // which, from 1; 0 = the workload has none
	Word     string            `json:"word"`  // the input as the plan has it
	Knobs    map[string]string `json:"knobs"`
	Repeat   int               `json:"repeat"` // from 0
}

// Cells are the runs of the plan in the order in which they are made: a randomised
// complete block design. All runs of the first repeat come first, then those of the
// next. Within a repeat each input of each workload is a block, the blocks come in
// random order, and so do the settings within each: what drifts on the machine affects
// all settings of an input alike, since they are compared with each other only.
func (p Plan) Cells() []Cell {
	settings := []map[string]string{{}} // all combinations of the knobs' values
	for _, name := range slices.Sorted(maps.Keys(p.Knobs)) {
		var next []map[string]string
		for _, s := range settings {
			for _, v := range p.Knobs[name] {
				one := maps.Clone(s)
				one[name] = v
				next = append(next, one)
			}
		}
		settings = next
	}
	rng := rand.New(rand.NewPCG(p.Seed, 1))
	var out []Cell
	for repeat := range cmp.Or(p.Repeats, DefaultRepeats) {
		var blocks [][]Cell
		for _, w := range p.Workloads {
			for i := range max(1, len(w.Inputs)) {
				var block []Cell
				for _, s := range settings {
					c := Cell{Workload: w.Name, Knobs: s, Repeat: repeat}
					if len(w.Inputs) > 0 {
						c.Input, c.Word = i+1, w.Inputs[i]
					}
					c.ID = c.name()
					block = append(block, c)
				}
				rng.Shuffle(len(block), func(i, j int) { block[i], block[j] = block[j], block[i] })
				blocks = append(blocks, block)
			}
		}
		rng.Shuffle(len(blocks), func(i, j int) { blocks[i], blocks[j] = blocks[j], blocks[i] })
		out = append(out, slices.Concat(blocks...)...)
	}
	return out
}

// name is made of the letters that every file system and the exporter take. Two cells
// whose words differ in other letters alone differ in a checksum.
func (c Cell) name() string {
	parts := []string{c.Workload}
	if c.Input > 0 {
		parts = append(parts, "i"+strconv.Itoa(c.Input))
	}
	for _, knob := range slices.Sorted(maps.Keys(c.Knobs)) {
		parts = append(parts, knob+c.Knobs[knob])
	}
	text := strings.Join(append(parts, "r"+strconv.Itoa(c.Repeat)), "-")
	clean := regexp.MustCompile(`[^A-Za-z0-9_.-]`).ReplaceAllString(text, "_")
	if clean != text || len(clean) > 100 {
		h := fnv.New32a()
		_, _ = h.Write([]byte(text)) // never fails
		clean = fmt.Sprintf("%.80s-%08x", clean, h.Sum32())
	}
	return clean
}

func (c Cell) settings() tuning.Settings {
	out := tuning.Settings{}
	for name, v := range c.Knobs {
		out[name] = tuning.ParseValue(v)
	}
	return out
}

func (c Cell) fill(text, dir string) string {
	return hole().ReplaceAllStringFunc(text, func(found string) string {
		switch name := strings.Trim(found, "{}"); name {
		case "input":
			return c.Word
		case "dir":
			return dir
		default:
			return c.Knobs[name]
		}
	})
}

func (c Cell) arguments(command []string, dir string) []string {
	var out []string
	for _, text := range command {
		if text == spread {
			out = append(out, strings.Fields(c.Word)...)
			continue
		}
		out = append(out, c.fill(text, dir))
	}
	return out
}
