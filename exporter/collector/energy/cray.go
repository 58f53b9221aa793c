package energy

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/exporter/hostfs"
)

// NewPMCounters returns a meter of /sys/cray/pm_counters, which the controller of a Cray node
// updates ten times a second and shows to all users: processors and memory, and in addition
// the node and its accelerators. A node without parts is counted as a whole, accelerators
// included.
func NewPMCounters(root hostfs.Root, model Model) (*Measured, error) {
	dir := root.Sys("cray", "pm_counters")
	files, err := names(dir, "no Cray counters")
	if err != nil {
		return nil, err
	}
	var all []*counter
	for _, file := range files {
		name := strings.TrimSuffix(file, "_energy")
		if file == "energy" {
			name = "node"
		} else if name == file {
			continue
		}
		all = append(all, &counter{
			id: "pm_counters:" + file, name: name, pkg: Whole,
			read: fromFile(filepath.Join(dir, file), ParsePMCounter), grew: growing(1),
		})
	}
	as := map[string]Component{"cpu": Package, "memory": DRAM}
	if !slices.ContainsFunc(all, func(c *counter) bool { return c.name == "cpu" }) {
		as = map[string]Component{"node": Node}
	}
	for _, c := range all {
		c.component = as[c.name]
	}
	return measured(BMC, all, model, "no energy below "+dir)
}

// ParsePMCounter reads one file of pm_counters, such as "12345 J 1700000000000000 us",
// into joules. Every error is hostfs.ErrFormat.
func ParsePMCounter(data []byte) (uint64, error) {
	fields := strings.Fields(string(data))
	if len(fields) < 2 || fields[1] != "J" {
		return 0, fmt.Errorf("%w: %.40q is not in joules", hostfs.ErrFormat, data)
	}
	return hostfs.Number([]byte(fields[0]))
}
