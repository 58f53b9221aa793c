package perf

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"pitchpipe/exporter/api"
)

// ErrUnknown means that there is no such event and no such preset.
var ErrUnknown = errors.New("unknown perf event")

// Preset is a named choice of events besides those that are always counted.
type Preset struct {
	Name   string
	Help   string
	Events []string
}

// Presets lists them. In each, events that are to be compared with one another are
// next to each other, so that they come into one group where the PMU is wide enough.
func Presets() []Preset {
	return []Preset{
		{"software", "the five software events alone, which are always counted", nil},
		{"basic", "how much is done, and how often it waits for memory or guesses wrongly; fits most PMUs at once", []string{
			"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses",
		}},
		{"memory", "where data comes from", []string{
			"cycles", "instructions", "L1-dcache-loads", "L1-dcache-load-misses", "LLC-loads", "LLC-load-misses",
			"dTLB-loads", "dTLB-load-misses", "node-loads", "node-load-misses", "stalled-cycles-backend",
		}},
		{"pipetune", "what PipeTune profiles, each once; most CPUs lack some, and share their counters for the rest", pipetune()},
	}
}

// pipetune is the 58 events of PipeTune's figure. Seven are generic events under a
// second name: here each has one.
func pipetune() []string {
	out := []string{
		"cycles", "instructions", "cache-references", "cache-misses", "branches", "branch-misses", "bus-cycles",
		"branch-loads", "branch-load-misses",
		"L1-dcache-loads", "L1-dcache-load-misses", "L1-dcache-stores", "L1-icache-load-misses",
		"LLC-loads", "LLC-load-misses", "LLC-stores", "LLC-store-misses",
		"dTLB-loads", "dTLB-load-misses", "dTLB-stores", "dTLB-store-misses", "iTLB-loads", "iTLB-load-misses",
		"node-loads", "node-load-misses", "node-stores", "node-store-misses",
	}
	for _, name := range []string{"tsc", "aperf", "mperf", "pperf", "smi"} {
		out = append(out, "msr/"+name+"/")
	}
	for _, name := range []string{
		"mem-loads", "mem-stores",
		"topdown-total-slots", "topdown-slots-issued", "topdown-slots-retired", "topdown-fetch-bubbles", "topdown-recovery-bubbles",
		"tx-start", "tx-commit", "tx-abort", "tx-capacity", "tx-conflict",
		"el-start", "el-commit", "el-abort", "el-capacity", "el-conflict", "cycles-t", "cycles-ct",
	} {
		out = append(out, "cpu/"+name+"/")
	}
	return out
}

const (
	pmuForm        = `^[A-Za-z0-9_-]+/[A-Za-z0-9_][A-Za-z0-9_.-]*/$`
	tracepointForm = `^[A-Za-z0-9_-]+:[A-Za-z0-9_]+$`
	tracepoint     = "tracepoint"
)

// Select finds the events that names mean, each once and in the order in which they
// are first named, without those that are always counted. A name is that of a preset
// or of an event in the catalogue; PMU/EVENT/ as the PMU's folder in sysfs has it; or
// SYSTEM:TRACEPOINT. Whether this machine has them is for the probe to say. An error
// is ErrUnknown and lists what there is.
func Select(names []string) ([]Event, error) {
	catalogue := Catalogue()
	var out []Event
	var unknown []string
	first := map[string]string{ // of the names of one event
		"cpu-cycles": "cycles", "branch-instructions": "branches", "faults": "page-faults", "cs": "context-switches", "migrations": "cpu-migrations",
	}
	take := func(name string) {
		name = cmp.Or(first[name], name)
		e, ok := find(catalogue, name)
		switch {
		case !ok:
			unknown = append(unknown, fmt.Sprintf("%q", name))
		case e.further() && !slices.ContainsFunc(out, func(o Event) bool { return o.Name == name }):
			out = append(out, e)
		}
	}
	for _, name := range names {
		name = strings.TrimSpace(name)
		if i := slices.IndexFunc(Presets(), func(p Preset) bool { return p.Name == name }); i >= 0 {
			for _, event := range Presets()[i].Events {
				take(event)
			}
			continue
		}
		if name != "" {
			take(name)
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("%w %s: want %s", ErrUnknown, strings.Join(unknown, ", "), offer(catalogue))
	}
	return out, nil
}

func find(catalogue []Event, name string) (Event, bool) {
	if i := slices.IndexFunc(catalogue, func(e Event) bool { return e.Name == name }); i >= 0 {
		return catalogue[i], true
	}
	named := Event{Name: name, Column: api.PerfEvent(name), Help: "As " + name + " is defined by the kernel or the CPU's maker."}
	switch {
	case regexp.MustCompile(pmuForm).MatchString(name):
		named.pmu, _, _ = strings.Cut(name, "/")
	case regexp.MustCompile(tracepointForm).MatchString(name):
		named.family = tracepoint
	default:
		return Event{}, false
	}
	return named, true
}

// offer is the text that lists what can be chosen.
func offer(catalogue []Event) string {
	var presets, events []string
	for _, p := range Presets() {
		presets = append(presets, p.Name)
	}
	for _, e := range catalogue {
		events = append(events, e.Name)
	}
	return "a preset (" + strings.Join(presets, ", ") + "), an event (" + strings.Join(events, ", ") +
		"), PMU/EVENT/ as in /sys/bus/event_source/devices, or SYSTEM:TRACEPOINT"
}
