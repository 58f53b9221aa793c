package cluster

import (
	"slices"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// Node is what the cluster's one node offers.
type Node struct {
	Cores, MHzPerCore, MemoryMB int
	Attributes                  map[string]string // that constraints name, as in "attr.kernel.name"
	Drivers                     []string
	Reserved                    func(alloc string) map[string][]int // cores by task
	MemoryMax                   bool                                // tasks may use more memory than they ask for
}

// capacity is what is left on the node.
type capacity struct {
	node        Node
	mhz, memory int
	taken       []bool // by core
}

// newCapacity is the node without the allocations that have not ended, but for those that the
// plan stops already.
func newCapacity(in Input, stops []Stop) *capacity {
	r := &capacity{node: in.Node, mhz: in.Node.Cores * in.Node.MHzPerCore, memory: in.Node.MemoryMB, taken: make([]bool, in.Node.Cores)}
	for _, a := range slices.Concat(in.Others, in.Allocs) {
		if !a.ClientTerminalStatus() && !slices.ContainsFunc(stops, func(s Stop) bool { return s.Alloc == a }) {
			r.use(a, 1)
		}
	}
	return r
}

// use takes what an allocation has; with sign -1 it gives it back.
func (r *capacity) use(a *api.Allocation, sign int) {
	for _, t := range a.AllocatedResources.Tasks {
		r.mhz -= sign * int(t.Cpu.CpuShares)
		r.memory -= sign * int(t.Memory.MemoryMB)
	}
	for _, cores := range r.node.Reserved(a.ID) {
		for _, c := range cores {
			r.taken[c] = sign > 0
		}
	}
}

// take makes room for one more allocation of a group. Without room there are no
// resources, and the metric says what was missing.
func (r *capacity) take(j *api.Job, g *api.TaskGroup) (*api.AllocatedResources, map[string][]int, *api.AllocationMetric) {
	m := &api.AllocationMetric{NodesInPool: 1, NodePool: *j.NodePool, NodesAvailable: map[string]int{"dc1": 1}, NodesEvaluated: 1}
	if why := r.unfit(j, g); why != "" {
		m.NodesFiltered, m.ConstraintFiltered = 1, map[string]int{why: 1}
		return nil, nil, m
	}
	out := &api.AllocatedResources{Tasks: map[string]*api.AllocatedTaskResources{}}
	out.Shared.DiskMB = int64(*g.EphemeralDisk.SizeMB)
	taken, reserved := slices.Clone(r.taken), map[string][]int{}
	mhz, memory, short := 0, 0, ""
	for _, t := range g.Tasks {
		res := &api.AllocatedTaskResources{Memory: api.AllocatedMemoryResources{MemoryMB: int64(*t.Resources.MemoryMB)}}
		if r.node.MemoryMax {
			res.Memory.MemoryMaxMB = int64(number(t.Resources.MemoryMaxMB))
		}
		n, shares := number(t.Resources.Cores), number(t.Resources.CPU)
		if n > 0 {
			shares = n * r.node.MHzPerCore
		}
		for c := range taken {
			if !taken[c] && len(reserved[t.Name]) < n {
				taken[c] = true
				reserved[t.Name] = append(reserved[t.Name], c)
			}
		}
		if len(reserved[t.Name]) < n {
			short = "cores"
		}
		res.Cpu.CpuShares = int64(shares)
		mhz, memory = mhz+shares, memory+*t.Resources.MemoryMB
		out.Tasks[t.Name] = res
	}
	switch {
	case short != "":
	case mhz > r.mhz:
		short = "cpu"
	case memory > r.memory:
		short = "memory"
	default:
		r.taken, r.mhz, r.memory = taken, r.mhz-mhz, r.memory-memory
		return out, reserved, m
	}
	m.NodesExhausted, m.DimensionExhausted = 1, map[string]int{short: 1}
	return nil, nil, m
}

// unfit says in Nomad's words why the node may not have the group, "" where it may.
func (r *capacity) unfit(j *api.Job, g *api.TaskGroup) string {
	constraints := slices.Concat(j.Constraints, g.Constraints)
	for _, t := range g.Tasks {
		if !slices.Contains(r.node.Drivers, t.Driver) {
			return "missing drivers"
		}
		constraints = append(constraints, t.Constraints...)
	}
	for _, c := range constraints {
		if !r.meets(c) {
			return c.LTarget + " " + c.Operand + " " + c.RTarget
		}
	}
	return ""
}

// meets knows the operands "=" and "set_contains". A constraint with another one is
// never met, so that a test that needs it shows it.
func (r *capacity) meets(c *api.Constraint) bool {
	left := c.LTarget
	if name, ok := strings.CutPrefix(left, "${"); ok {
		left = r.node.Attributes[strings.TrimSuffix(name, "}")]
	}
	switch c.Operand {
	case "", "=", "==", "is":
		return left == c.RTarget
	case "set_contains":
		have := strings.Split(left, ",")
		return !slices.ContainsFunc(strings.Split(c.RTarget, ","), func(want string) bool { return !slices.Contains(have, want) })
	}
	return false
}
