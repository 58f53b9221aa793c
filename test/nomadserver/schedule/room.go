package schedule

import (
	"slices"

	"github.com/hashicorp/nomad/api"
)

// Node is what the cluster's one node offers.
type Node struct {
	Cores, MHzPerCore, MemoryMB int
	Datacenter, Pool            string
	// Attributes are those that constraints name: "attr.kernel.name", "meta.x",
	// "node.class", "node.unique.id".
	Attributes map[string]string
	Drivers    []string
	// Reserved gives the cores that tasks of an allocation have for themselves.
	Reserved func(allocID string) map[string][]int
	// MemoryMax tells that tasks may use more memory than they ask for.
	MemoryMax bool
}

// room is what is left on the node.
type room struct {
	node   Node
	mhz    int
	memory int
	cores  []bool // true = taken
}

// newRoom is the node without what stands on it: all that has not ended on the node,
// but those that the plan stops already.
func newRoom(in Input, stops []Stop) *room {
	r := &room{
		node: in.Node, mhz: in.Node.Cores * in.Node.MHzPerCore, memory: in.Node.MemoryMB,
		cores: make([]bool, in.Node.Cores),
	}
	for _, a := range slices.Concat(in.Others, in.Allocs) {
		if !a.ClientTerminalStatus() && !slices.ContainsFunc(stops, func(s Stop) bool { return s.Alloc == a }) {
			r.use(a, 1)
		}
	}
	return r
}

func (r *room) use(a *api.Allocation, sign int) {
	if a.AllocatedResources == nil {
		return
	}
	for _, t := range a.AllocatedResources.Tasks {
		r.mhz -= sign * int(t.Cpu.CpuShares)
		r.memory -= sign * int(t.Memory.MemoryMB)
	}
	for _, cores := range r.node.Reserved(a.ID) {
		for _, c := range cores {
			r.cores[c] = sign > 0
		}
	}
}

// leave gives back what an allocation uses; the function that it returns takes it again.
func (r *room) leave(a *api.Allocation) func() {
	r.use(a, -1)
	return func() { r.use(a, 1) }
}

// take makes room for one more allocation of a group; without room there are no
// resources and the metric says what was missing.
func (r *room) take(j *api.Job, g *api.TaskGroup) (*api.AllocatedResources, map[string][]int, *api.AllocationMetric) {
	m := &api.AllocationMetric{NodesInPool: 1, NodePool: *j.NodePool, NodesAvailable: map[string]int{r.node.Datacenter: 1}}
	if !r.near(j) {
		m.NodesInPool, m.NodesAvailable = 0, map[string]int{}
		return nil, nil, m
	}
	m.NodesEvaluated = 1
	if why := r.unfit(j, g); why != "" {
		m.NodesFiltered = 1
		m.ConstraintFiltered = map[string]int{why: 1}
		return nil, nil, m
	}
	full := func(dimension string) (*api.AllocatedResources, map[string][]int, *api.AllocationMetric) {
		m.NodesExhausted = 1
		m.DimensionExhausted = map[string]int{dimension: 1}
		m.ResourcesExhausted = map[string]*api.Resources{}
		for _, t := range g.Tasks {
			m.ResourcesExhausted[t.Name] = t.Resources
		}
		return nil, nil, m
	}
	out := &api.AllocatedResources{Tasks: map[string]*api.AllocatedTaskResources{}}
	if g.EphemeralDisk != nil && g.EphemeralDisk.SizeMB != nil {
		out.Shared.DiskMB = int64(*g.EphemeralDisk.SizeMB)
	}
	free := slices.Clone(r.cores)
	reserved := map[string][]int{}
	mhz, memory := 0, 0
	for _, t := range g.Tasks {
		res := &api.AllocatedTaskResources{Memory: api.AllocatedMemoryResources{MemoryMB: int64(value(t.Resources.MemoryMB))}}
		if r.node.MemoryMax {
			res.Memory.MemoryMaxMB = int64(value(t.Resources.MemoryMaxMB))
		}
		if n := value(t.Resources.Cores); n > 0 {
			for c, taken := range free {
				if !taken && len(reserved[t.Name]) < n {
					free[c] = true
					reserved[t.Name] = append(reserved[t.Name], c)
				}
			}
			if len(reserved[t.Name]) < n {
				return full("cores")
			}
			res.Cpu.CpuShares = int64(n * r.node.MHzPerCore)
		} else {
			res.Cpu.CpuShares = int64(value(t.Resources.CPU))
		}
		mhz += int(res.Cpu.CpuShares)
		memory += int(res.Memory.MemoryMB)
		out.Tasks[t.Name] = res
	}
	switch {
	case mhz > r.mhz:
		return full("cpu")
	case memory > r.memory:
		return full("memory")
	}
	r.cores, r.mhz, r.memory = free, r.mhz-mhz, r.memory-memory
	return out, reserved, m
}

func value(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}
