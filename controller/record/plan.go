package record

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api/progress"
)

// ErrPlan marks a plan that cannot be run.
var ErrPlan = errors.New("invalid plan")

// Defaults of a plan.
const (
	DefaultRepeats  = 2
	DefaultTimeout  = time.Hour
	DefaultProgress = `[Ee]poch[ :=]+(?P<epoch>\d+)(?:\s*/\s*(?P<total>\d+))?(?:.*?\bloss[ :=]+(?P<loss>[-+.\deE]+))?(?:.*?\bacc[a-z]*[ :=]+(?P<quality>[-+.\deE]+))?`
)

// mostRuns and mostRetries bound a plan: more is a mistake in it.
const (
	mostRuns    = 100_000
	mostRetries = 10
)

// spread stands for the words of an input, each its own argument.
const spread = "{input...}"

// Plan is what to run.
type Plan struct {
	Workloads []Workload          `json:"workloads" yaml:"workloads"`
	Knobs     map[string][]string `json:"knobs" yaml:"knobs"` // values by name; "cores" also binds the command to so many CPUs
	Repeats   int                 `json:"repeats" yaml:"repeats"`
	Progress  string              `json:"progress" yaml:"progress"` // pattern of the lines that end an epoch, with the groups epoch, total, loss, quality
	Timeout   string              `json:"timeout" yaml:"timeout"`   // of one run
	Retries   int                 `json:"retries" yaml:"retries"`   // of a run that others disturbed; the least disturbed is kept
	Seed      uint64              `json:"seed" yaml:"seed"`         // of the order
	Machine   string              `json:"machine" yaml:"machine"`   // empty = as the meter calls it
}

// Workload is one program with its inputs.
type Workload struct {
	Name    string            `json:"name" yaml:"name"`
	Command []string          `json:"command" yaml:"command"` // {KNOB}, {input} and {dir} are replaced; {input...} becomes an argument for each of the input's words
	Env     map[string]string `json:"env" yaml:"env"`         // besides the caller's; replaced likewise
	Inputs  []string          `json:"inputs" yaml:"inputs"`   // none = one without a name
}

// Parse reads a plan in YAML; errors contain name.
func Parse(name string, text []byte) (Plan, error) {
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	var p Plan
	if err := d.Decode(&p); err != nil {
		if errors.Is(err, io.EOF) {
			return Plan{}, fmt.Errorf("%w: %s:1:1: it is empty", ErrPlan, name)
		}
		return Plan{}, fmt.Errorf("%w: %s", ErrPlan, located(name, err))
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return Plan{}, fmt.Errorf("%w: %s: want one document", ErrPlan, name)
	}
	if err := p.Check(); err != nil {
		return Plan{}, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// located puts file and line before what the decoder says. It names no columns.
func located(name string, err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n  ")
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(text); m != nil {
		return name + ":" + m[1] + ":1: " + strings.ReplaceAll(text[len(m[0]):], "\n", ";")
	}
	return name + ":1:1: " + strings.ReplaceAll(text, "\n", ";")
}

// want is nil where ok, else an ErrPlan.
func want(ok bool, format string, args ...any) error {
	if ok {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrPlan, fmt.Sprintf(format, args...))
}

// Check says what is wrong with a plan.
func (p Plan) Check() error {
	err := want(len(p.Workloads) > 0, "it has no workloads")
	names := map[string]bool{}
	for i, w := range p.Workloads {
		err = cmp.Or(err,
			want(w.Name != "" && !names[w.Name], "workload %d: want a unique name, got %q", i+1, w.Name),
			want(len(w.Command) > 0 && w.Command[0] != "", "workload %q has no command", w.Name),
			p.holes(w))
		names[w.Name] = true
	}
	runs := max(p.Repeats, 1)
	for _, name := range slices.Sorted(maps.Keys(p.Knobs)) {
		values := p.Knobs[name]
		err = cmp.Or(err,
			want(knobName().MatchString(name) && name != "input" && name != "dir", "knob %q: want a name of lower-case letters, digits and _, and not input or dir", name),
			want(len(values) > 0 && !slices.Contains(values, ""), "knob %s: want values, none of them empty", name),
			want(len(slices.Compact(slices.Sorted(slices.Values(values)))) == len(values), "knob %s has a value twice", name))
		for _, v := range values {
			n, bad := strconv.Atoi(v)
			err = cmp.Or(err, want(name != tuning.Cores || bad == nil && n >= 1, "knob cores: want whole numbers from 1, got %q", v))
		}
		runs = min(runs*len(values), mostRuns+1) // of many knobs the product overflows
	}
	_, _, limits := p.limits()
	return cmp.Or(err,
		want(runs <= mostRuns, "more than %d runs of each workload", mostRuns),
		want(p.Repeats >= 0, "repeats: want 1 or more, got %d", p.Repeats),
		want(p.Retries >= 0 && p.Retries <= mostRetries, "retries: want 0 to %d, got %d", mostRetries, p.Retries),
		limits)
}

func knobName() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9_]*$`) }

// holes checks that all that is to be replaced can be.
func (p Plan) holes(w Workload) error {
	var texts []string
	for i, text := range w.Command {
		switch {
		case text == spread && i > 0 && len(w.Inputs) > 0:
		case strings.Contains(text, spread):
			return fmt.Errorf("%w: workload %q: %s in %q: want it alone as an argument, and inputs", ErrPlan, w.Name, spread, text)
		default:
			texts = append(texts, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		texts = append(texts, w.Env[name])
	}
	for _, text := range texts {
		for _, found := range regexp.MustCompile(`\{[a-z][a-z0-9_]*\}`).FindAllString(text, -1) {
			name := strings.Trim(found, "{}")
			if _, ok := p.Knobs[name]; !ok && name != "dir" && (name != "input" || len(w.Inputs) == 0) {
				return fmt.Errorf("%w: workload %q: %s in %q is no knob, nor {input} or {dir}", ErrPlan, w.Name, found, text)
			}
		}
	}
	return nil
}

// limits are how long a run may take, and what finds the end of an epoch in its output.
func (p Plan) limits() (time.Duration, *progress.Matcher, error) {
	timeout, err := time.ParseDuration(cmp.Or(p.Timeout, DefaultTimeout.String()))
	if err != nil || timeout <= 0 {
		return 0, nil, fmt.Errorf("%w: timeout: want a duration such as 90s or 10m, got %q", ErrPlan, p.Timeout)
	}
	pattern, err := regexp.Compile(cmp.Or(p.Progress, DefaultProgress))
	if err != nil {
		return 0, nil, fmt.Errorf("%w: progress: %w", ErrPlan, err)
	}
	m, err := progress.NewMatcher(pattern, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	return timeout, m, nil
}

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
	words := []string{"{input}", c.Word, "{dir}", dir}
	for name, v := range c.Knobs {
		words = append(words, "{"+name+"}", v)
	}
	return strings.NewReplacer(words...).Replace(text)
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
