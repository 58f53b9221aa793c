package parse

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Partition is one record of `scontrol -o show partition`.
type Partition struct {
	Name      string
	QOS       string // empty = none
	Weights   string // TRESBillingWeights; empty = it bills the number of CPUs
	Exclusive bool   // each job gets whole nodes, whatever it asked for
	Hidden    bool   // only scontrol -a and the like show it

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
		p := Partition{
			Name: r.text("PartitionName"), QOS: none(r.text("QoS")), Weights: f["TRESBillingWeights"],
			Exclusive: f["OverSubscribe"] == "EXCLUSIVE", Hidden: f["Hidden"] == "YES", Select: strings.TrimPrefix(r.word("SelectTypeParameters"), "NONE"),
			MaxTime: maybe(&r, "MaxTime", Limit), MaxMemPerNode: maybe(&r, "MaxMemPerNode", most), MaxMemPerCPU: maybe(&r, "MaxMemPerCPU", most),
		}
		if r.err != nil {
			return nil, r.err
		}
		out = append(out, p)
	}
	return out, nil
}

// most reads an amount of memory, or UNLIMITED, which is 0.
func most(field, s string) (int64, error) {
	if s == "UNLIMITED" {
		return 0, nil
	}
	return Memory(field, s)
}

// Weights is what a partition bills of what a job has: for each CPU, GiB of memory and
// GPU. A GPU of a type is billed as one and as one of its type, the dearest type.
type Weights struct{ CPU, GiB, GPU float64 }

// Billing reads Partition.Weights. A weight is for one, and for one MiB of memory; a
// suffix makes it that for 1024 times as much, and again for each further one. Of memory
// K and M change nothing. Names of resources are in any case.
func Billing(s string) (Weights, error) {
	if s == "" {
		return Weights{CPU: 1}, nil
	}
	var w Weights
	var typed float64
	for item := range strings.SplitSeq(s, ",") {
		name, text, _ := strings.Cut(item, "=")
		name = strings.ToLower(name)
		number := strings.TrimRight(text, "KMGTPkmgtp")
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || !(v >= 0 && v <= 1e12) || len(text)-len(number) > 1 || strings.ContainsAny(number, "xXpP_") {
			return Weights{}, badValue("TRESBillingWeights", s)
		}
		steps := strings.Index("KMGTP", strings.ToUpper(text[len(number):])) + 1
		if len(number) == len(text) {
			steps = 0
		}
		switch {
		case name == "cpu":
			w.CPU = math.Ldexp(v, -10*steps)
		case name == "mem":
			w.GiB = math.Ldexp(v, 10-10*max(steps-2, 0))
		case name == "gres/gpu":
			w.GPU = math.Ldexp(v, -10*steps)
		case strings.HasPrefix(name, "gres/gpu:"):
			typed = max(typed, math.Ldexp(v, -10*steps))
		}
	}
	w.GPU += typed
	return w, nil
}
