package slurmctl

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/slurm/command"
	"pitchpipe/driver/slurm/limits"
	"pitchpipe/driver/slurm/parse"
)

// Memory is a limit as Slurm counts it: of a node, or of a CPU; 0 bytes = none asked for.
type Memory struct {
	Bytes  int64 `json:"bytes"` // whole MiB
	PerCPU bool  `json:"per_cpu,omitempty"`
}

// Size is what Slurm can change of a job.
type Size struct {
	Cores     int `json:"cores"`
	Memory    `json:"memory"`
	TimeLimit time.Duration `json:"time_limit"` // 0 = none asked for
}

// SizeOf returns the part of what Slurm gives a job that can be changed.
func SizeOf(j parse.Job) Size {
	return Size{Cores: j.Cores(), Memory: Memory{Bytes: j.MemoryBytes, PerCPU: j.MemoryPerCPU}, TimeLimit: j.Limit()}
}

// UnmarshalJSON also takes the names that the driver's journal once had for memory.
func (s *Size) UnmarshalJSON(data []byte) error {
	type size Size
	return json.Unmarshal(data, &struct {
		*size
		Bytes  *int64 `json:"memory_bytes"`
		PerCPU *bool  `json:"memory_per_cpu"`
	}{(*size)(s), &s.Bytes, &s.PerCPU})
}

// String names cores, memory and time limit.
func (s Size) String() string {
	return fmt.Sprintf("%d cores, %d MiB%s, %v", s.Cores, s.Bytes>>20, map[bool]string{true: " per CPU"}[s.PerCPU], s.TimeLimit)
}

// Of is the memory of so many CPUs.
func (m Memory) Of(cpus int) int64 {
	if m.PerCPU {
		return m.Bytes * int64(cpus)
	}
	return m.Bytes
}

// Total is the memory of the whole job; 0 = none asked for.
func (s Size) Total() int64 { return s.Of(s.Cores) }

// With is the size with other cores. Memory by CPU becomes that of the whole job, which stays.
func (s Size) With(cores int) Size {
	if s.PerCPU && cores != s.Cores {
		s.Memory = Memory{Bytes: s.Total()}
	}
	s.Cores = cores
	return s
}

// Take returns the size with what is new in another: each part that none of the known has.
func (s Size) Take(now Size, known ...Size) Size {
	known = append(known, s)
	if !slices.ContainsFunc(known, func(k Size) bool { return k.Cores == now.Cores }) {
		s.Cores = now.Cores
	}
	if !slices.ContainsFunc(known, func(k Size) bool { return k.Memory == now.Memory }) {
		s.Memory = now.Memory
	}
	if !slices.ContainsFunc(known, func(k Size) bool { return k.TimeLimit == now.TimeLimit }) {
		s.TimeLimit = now.TimeLimit
	}
	return s
}

// Counted is what a size comes to in limits.
func (s Size) Counted() limits.Size {
	return limits.Size{Cores: s.Cores, MiB: s.Total() >> 20, Minutes: int64(s.TimeLimit / time.Minute)}
}

// Rules are the partitions, hidden ones too, and the configuration of the cluster.
func Rules(ctx context.Context, run command.Runner) ([]parse.Partition, parse.Conf, error) {
	partitions, err := command.Read(ctx, run, parse.PartitionRecords, "scontrol", "-a", "-o", "show", "partition")
	if err != nil {
		return nil, nil, fmt.Errorf("of the partitions: %w", err)
	}
	conf, err := Config(ctx, run)
	return partitions, conf, err
}

// Within reports whether each of a job's partitions is among these.
func Within(all []string, partitions string) bool {
	return !slices.ContainsFunc(strings.Split(partitions, ","), func(p string) bool { return !slices.Contains(all, p) })
}

// nodesFormat is what sinfo is asked for: cores of a socket and threads of a core.
const nodesFormat = "%Y|%Z"

// Unit is the number of CPUs that a job of these partitions gets at a time: the threads of a
// core, of the nodes of the cluster that have most, or of a socket, unless single CPUs are given.
func Unit(ctx context.Context, run command.Runner, conf parse.Conf, partitions []parse.Partition, names string) (int, error) {
	how := []string{conf["SelectTypeParameters"]}
	for _, p := range partitions {
		if p.Select != "" && slices.Contains(strings.Split(names, ","), p.Name) {
			how = append(how, p.Select)
		}
	}
	gives := func(what string) bool {
		return slices.ContainsFunc(how, func(s string) bool { return strings.Contains(strings.ToUpper(s), what) })
	}
	if gives("CR_CPU") && len(how) == 1 {
		return 1, nil
	}
	printed, err := command.Ask(ctx, run, "sinfo", "-h", "-a", "-e", "-o", nodesFormat)
	nodes, bad := parse.Rows("sinfo", printed, 2)
	if err = cmp.Or(err, bad); err != nil {
		return 0, err
	}
	most := 1
	for _, node := range nodes {
		c, err := strconv.Atoi(strings.TrimSuffix(node[0], "+"))
		t, err2 := strconv.Atoi(strings.TrimSuffix(node[1], "+"))
		if err := errors.Join(err, err2); err != nil || c < 1 || t < 1 {
			return 0, fmt.Errorf("%w: sinfo prints %.40q", parse.ErrFormat, strings.Join(node, "|"))
		}
		if gives("CR_SOCKET") {
			t *= c
		}
		most = max(most, t)
	}
	return most, nil
}

// ByCPU refuses to change the memory of a job that asked for it by CPU and gets more CPUs than
// cores, such as both threads of each: Slurm gives it memory for all of them, so that what looks
// like its owner's total is less.
func ByCPU(ctx context.Context, run command.Runner, j parse.Job, own, after Size) error {
	if !own.PerCPU || after.Memory == own.Memory {
		return nil
	}
	unit := 1
	partitions, conf, err := Rules(ctx, run)
	if err == nil {
		unit, err = Unit(ctx, run, conf, partitions, j.Partition)
	}
	given := parse.Running(j.State) && j.Cores() == own.Cores && j.CPUs > own.Cores
	switch {
	case err != nil:
		return fmt.Errorf("how many CPUs it gets: %w", err)
	case given || own.Cores%unit != 0 || unit > 1 && j.FewThreads:
		return fmt.Errorf("it has memory by CPU and gets more CPUs than its %d cores; with --mem its size could be changed: %w", own.Cores, driver.ErrUnsupported)
	}
	return nil
}
