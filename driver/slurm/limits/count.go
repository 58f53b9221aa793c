package limits

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"

	"pitchpipe/driver/slurm/parse"
)

// compare compares each limit with what the job would have. What others that wait will have
// counts as in use where they share the limits.
func (c *check) compare(whose string, l parse.Limits, shares func(Job) bool) error {
	var errs []error
	for _, limit := range slices.Sorted(maps.Keys(l)) {
		b := l[limit]
		name, resource, _ := strings.Cut(limit, "=")
		if b.Limit == parse.Unlimited || c.hidden[limit] || !slices.Contains(touched(), resource) {
			continue
		}
		over := &Exceeded{Whose: whose, Limit: limit, Value: b.Limit, One: !counts(name), Least: name == "MinTRESPerJob"}
		wanted, known := c.size.of(name, resource)
		over.Wanted = wanted
		others := true
		if counts(name) {
			over.Used, others = c.used(name, resource, l, shares)
		}
		switch {
		case !known && over.Least: // what is unknown is more than was asked for
		case !known:
			errs = append(errs, fmt.Errorf("%s has %s %d, and how much of it the job has is unknown: %w", whose, limit, b.Limit, ErrUnknown))
		case !others:
			errs = append(errs, fmt.Errorf("%s has %s %d, and what a job that waits has of that is unknown: %w", whose, limit, b.Limit, ErrUnknown))
		case over.Least && over.Wanted < b.Limit, !over.Least && (over.Used > b.Limit || over.Wanted > b.Limit-over.Used):
			errs = append(errs, over)
		}
	}
	return errors.Join(errs...)
}

// counts reports whether a limit counts all jobs, and not each alone.
func counts(limit string) bool {
	return strings.HasPrefix(limit, "Grp") || strings.HasPrefix(limit, "MaxTRESPerUser") || strings.HasPrefix(limit, "MaxTRESPerAccount")
}

// touched are the resources that a change of a job's size changes. Limits of
// time have none.
func touched() []string { return []string{"", "cpu", "mem", "node", "billing"} }

// used is what other jobs have of a limit, and will have.
func (c *check) used(name, resource string, l parse.Limits, shares func(Job) bool) (used uint64, known bool) {
	used = l[name+"="+resource].Used
	has := c.job.Has.amounts()[resource]
	// Minutes that running jobs may still use, without those of the job.
	running := l["GrpTRESRunMins="+resource].Used
	running -= min(running, times(has, uint64(max(c.job.Has.Minutes, 0))))
	switch {
	case name == "GrpWall":
		used = l[name].Used
	case name == "GrpTRESRunMins":
		used = running
	case name == "GrpTRESMins" && c.job.Safe:
		used = plus(used, running)
	case name != "GrpTRESMins": // its own minutes are spent
		used -= min(used, has)
	}
	for _, w := range c.job.Beside {
		if !shares(w) {
			continue
		}
		w.Has.Whole = w.Has.Whole || slices.ContainsFunc(w.Partitions, func(p string) bool { return c.partitions[p].Exclusive })
		add, known := w.Has.of(name, resource)
		if !known {
			return 0, false
		}
		used = plus(used, add)
	}
	return used, true
}

// of is what a job of this size has of what a limit is about, as far as that is known. Without
// a time limit it has minutes without end.
func (s Size) of(limit, resource string) (uint64, bool) {
	amount, known := s.amounts()[resource]
	switch timed := strings.HasSuffix(limit, "Wall") || strings.Contains(limit, "Mins"); {
	case timed && s.Minutes <= 0:
		return parse.Unlimited, known
	case timed:
		return times(amount, uint64(s.Minutes)), known
	}
	return amount, known
}

// amounts are what a job of this size has of each resource, as far as that is known.
func (s Size) amounts() map[string]uint64 {
	cores := uint64(max(s.Cores, 0))
	switch {
	case s.Whole:
		return map[string]uint64{"": 1, "node": 1}
	case s.Cores <= 0: // it has nothing
		return map[string]uint64{"": 1}
	}
	out := map[string]uint64{"": 1, "cpu": cores, "node": 1}
	if !s.weighed {
		out["billing"] = cores
	}
	if s.MiB > 0 {
		out["mem"] = uint64(s.MiB)
	}
	return out
}

// plus and times stay at parse.Unlimited, which is the largest number.
func plus(a, b uint64) uint64 {
	if a > parse.Unlimited-b {
		return parse.Unlimited
	}
	return a + b
}

func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return parse.Unlimited
	}
	return low
}

// Takes returns nil where one of the partitions that a job may start in takes it with
// another size, or an *Exceeded. With fewer cores the same memory is more for each, and
// Slurm would have such a job wait for ever, or give it its cores back. What its present
// size does not keep either is not asked of the other. The cluster says how much memory a job
// may have where a partition does not.
func Takes(partitions []parse.Partition, cluster parse.Conf, names []string, before, after Size) error {
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
		first = cmp.Or(first, err)
	}
	return first
}

func takes(p parse.Partition, cluster parse.Conf, before, after Size) error {
	node, cpu := p.MaxMemPerNode>>20, p.MaxMemPerCPU>>20
	if node == 0 && cpu == 0 {
		node, cpu = int64(cluster.Number("MaxMemPerNode")), int64(cluster.Number("MaxMemPerCPU")) // MiB
	}
	for _, l := range []struct {
		limit             string
		value, have, want int64
	}{
		{"MaxTime", int64(p.MaxTime.Minutes()), before.Minutes, after.Minutes},
		{"MaxMemPerNode", node, before.MiB, after.MiB},
		{"MaxMemPerCPU", cpu, before.perCore(), after.perCore()},
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
