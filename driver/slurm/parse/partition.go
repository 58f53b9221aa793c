package parse

import (
	"fmt"
	"strings"
)

// Partition is one record of `scontrol -o show partition`.
type Partition struct {
	Name    string
	QOS     string // empty = none
	Weighed bool   // billing is not the number of CPUs there
}

// PartitionRecords reads `scontrol -o show partition`.
func PartitionRecords(output []byte) ([]Partition, error) {
	var out []Partition
	for line := range strings.Lines(string(output)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		f, err := words(line)
		if err != nil {
			return nil, fmt.Errorf("partition: %w", err)
		}
		r := reader{fields: f}
		p := Partition{Name: r.text("PartitionName"), QOS: none(r.text("QoS"))}
		_, p.Weighed = f["TRESBillingWeights"]
		if r.err != nil {
			return nil, r.err
		}
		out = append(out, p)
	}
	return out, nil
}
