package parse

import (
	"fmt"
	"strings"
	"time"
)

// Partition is one record of `scontrol -o show partition`.
type Partition struct {
	Name      string
	QOS       string // empty = none
	Weighed   bool   // billing is not the number of CPUs there
	Exclusive bool   // each job gets whole nodes, whatever it asked for

	MaxTime       time.Duration // of a job; 0 = none
	MaxMemPerNode int64         // bytes that one job may have; 0 = what the cluster says, as the next
	MaxMemPerCPU  int64
	Select        string // SelectTypeParameters of its own; empty = the cluster's
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
		p := Partition{Name: r.text("PartitionName"), QOS: none(r.text("QoS")), Exclusive: f["OverSubscribe"] == "EXCLUSIVE"}
		_, p.Weighed = f["TRESBillingWeights"]
		if s := f["SelectTypeParameters"]; s != "NONE" {
			p.Select = none(s)
		}
		if f["MaxTime"] != "" {
			p.MaxTime = read(&r, "MaxTime", Limit)
		}
		p.MaxMemPerNode, p.MaxMemPerCPU = most(&r, "MaxMemPerNode"), most(&r, "MaxMemPerCPU")
		if r.err != nil {
			return nil, r.err
		}
		out = append(out, p)
	}
	return out, nil
}

// most reads an amount of memory that may be missing, or UNLIMITED; 0 for both.
func most(r *reader, key string) int64 {
	if text := r.fields[key]; text == "" || text == "UNLIMITED" || r.err != nil {
		return 0
	}
	return read(r, key, Memory)
}
