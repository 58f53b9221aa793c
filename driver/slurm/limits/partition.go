package limits

import (
	"slices"

	"pitchpipe/driver/slurm/parse"
)

// Most is how much memory a cluster lets one job have, where a partition does not say;
// 0 = as much as there is.
type Most struct{ NodeMiB, CPUMiB int64 }

// Takes returns nil where one of the partitions that a job may start in takes it with
// another size, or an *Exceeded. With fewer cores the same memory is more for each, and
// Slurm would have such a job wait for ever, or give it its cores back. What its present
// size does not keep either is not asked of the other.
func Takes(partitions []parse.Partition, cluster Most, names []string, before, after Size) error {
	var first error
	for _, name := range names {
		i := slices.IndexFunc(partitions, func(p parse.Partition) bool { return p.Name == name })
		if i < 0 {
			return nil // Check says so, where it matters
		}
		err := takes(partitions[i], cluster, before, after)
		if err == nil {
			return nil
		}
		if first == nil {
			first = err
		}
	}
	return first
}

func takes(p parse.Partition, cluster Most, before, after Size) error {
	most := Most{p.MaxMemPerNode >> 20, p.MaxMemPerCPU >> 20}
	if most == (Most{}) {
		most = cluster
	}
	for _, l := range []struct {
		limit             string
		value, have, want int64
	}{
		{"MaxTime", int64(p.MaxTime.Minutes()), before.Minutes, after.Minutes},
		{"MaxMemPerNode", most.NodeMiB, before.MiB, after.MiB},
		{"MaxMemPerCPU", most.CPUMiB, before.perCore(), after.perCore()},
	} {
		if l.value > 0 && l.want > l.value && l.have <= l.value {
			return &Exceeded{Whose: "partition " + p.Name, Limit: l.limit, Value: uint64(l.value), Wanted: uint64(l.want), One: true}
		}
	}
	return nil
}

// perCore is the memory of each core, in MiB rounded up; 0 = not known.
func (s Size) perCore() int64 {
	if s.Cores <= 0 {
		return 0
	}
	return (s.MiB + int64(s.Cores) - 1) / int64(s.Cores)
}
