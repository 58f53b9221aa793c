package energy

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// NewPMCounters returns a meter of what the controller of a Cray node shows in
// /sys/cray/pm_counters, ten times a second and to everybody: its processors and memory,
// and beside them the node and its accelerators. A node that shows no parts is counted
// as a whole, accelerators included.
func NewPMCounters(root hostfs.Root, model Model) (*Measured, error) {
	dir := root.Sys("cray", "pm_counters")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: no Cray node: %s is not there", collector.ErrUnsupported, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("pm_counters: %w", err)
	}
	var c []*file
	for _, e := range entries {
		name := e.Name()
		if name != "energy" && !strings.HasSuffix(name, "_energy") {
			continue
		}
		p := &file{path: dir + "/" + name, parse: ParsePMCounter, sum: &growing{unit: 1}}
		p.id, p.name, p.pkg = "pm_counters:"+name, strings.TrimSuffix(name, "_energy"), Whole
		if name == "energy" {
			p.name = "node"
		}
		c = append(c, p)
	}
	parts := slices.ContainsFunc(c, func(p *file) bool { return p.name == "cpu" })
	for _, p := range c {
		switch {
		case parts && p.name == "cpu":
			p.component = Package
		case parts && p.name == "memory":
			p.component = DRAM
		case !parts && p.name == "node":
			p.component = Node
		default:
			continue
		}
		if _, err := p.now(); err != nil {
			return nil, fmt.Errorf("pm_counters: %w", err)
		}
	}
	m, err := measured(BMC, files{"pm_counters", c}, model)
	if err != nil {
		return nil, err
	}
	if m.parts() == 0 {
		return nil, fmt.Errorf("%w: no energy below %s", collector.ErrUnsupported, dir)
	}
	if !parts {
		m.cards = &cards{}
	}
	return m, nil
}

// ParsePMCounter reads one file of pm_counters, such as "12345 J 1700000000000000 us",
// into joules. Every error is hostfs.ErrFormat.
func ParsePMCounter(data []byte) (uint64, error) {
	fields := strings.Fields(string(data))
	if len(fields) < 2 || fields[1] != "J" {
		return 0, fmt.Errorf("%w: %.40q are no joules", hostfs.ErrFormat, data)
	}
	return hostfs.Number([]byte(fields[0]))
}
