package simulate

import (
	"cmp"
	"fmt"
	"slices"

	"pitchpipe/controller/joblog"
)

// Shape is a cluster as a user describes it. 0 is not said.
type Shape struct{ Nodes, CoresPerNode, GPUsPerNode int }

// The most that a cluster may have: each node takes memory, and their product must be a number.
const mostNodes, mostUnits = 1 << 20, 1 << 30

// Prepare fits a log and a cluster together. What the shape does not say is taken from the log. Units are GPUs
// where nodes have any, and else cores. Jobs that need none, or more than their partition has, are left out as broken.
func Prepare(l joblog.Log, s Shape) (Input, error) {
	in := Input{Log: l}
	switch {
	case len(l.Clusters) > 1 && (s.Nodes > 0 || s.CoresPerNode > 0):
		return in, fmt.Errorf("%w: the log says which nodes its %d partitions have: leave --nodes and --cores-per-node out", ErrInput, len(l.Clusters))
	case len(l.Clusters) > 1 || s == (Shape{}):
		for _, c := range l.Clusters {
			p := Partition{Group: c.Group, Nodes: c.Nodes, PerNode: cmp.Or(s.GPUsPerNode, c.GPUs)}
			if p.GPUs = p.PerNode > 0; !p.GPUs { // the place of the cores is unknown: one pool
				p.Nodes, p.PerNode = 1, c.Cores
			}
			in.Partitions = append(in.Partitions, p)
		}
	default:
		said := joblog.Cluster{}
		if len(l.Clusters) > 0 {
			said = l.Clusters[0]
		}
		p := Partition{PerNode: cmp.Or(s.GPUsPerNode, s.CoresPerNode, said.Cores/cmp.Or(said.Nodes, s.Nodes, 1)), GPUs: s.GPUsPerNode > 0}
		if p.Nodes = cmp.Or(s.Nodes, said.Nodes); p.Nodes == 0 && !p.GPUs && p.PerNode > 0 {
			p.Nodes = (said.Cores + p.PerNode - 1) / p.PerNode
		}
		if p.Nodes != 0 && p.PerNode != 0 {
			in.Partitions = []Partition{p}
		}
	}
	of := map[string]Partition{}
	for _, p := range in.Partitions {
		if p.Nodes < 1 || p.PerNode < 1 {
			return in, fmt.Errorf("%w: partition %q has %d nodes of %d: want at least 1 of 1", ErrInput, p.Group, p.Nodes, p.PerNode)
		}
		if p.Nodes > mostNodes || p.PerNode > mostUnits {
			return in, fmt.Errorf("%w: %d nodes of %d are more than any cluster has: want at most %d of %d", ErrInput, p.Nodes, p.PerNode, mostNodes, mostUnits)
		}
		of[p.Group] = p
	}
	if len(of) == 0 {
		return in, fmt.Errorf("%w: the log does not say how large the cluster is: want --nodes and --cores-per-node or --gpus-per-node", ErrInput)
	}
	in.Log.Jobs, in.Log.Broken = nil, slices.Clip(l.Broken)
	for _, j := range l.Jobs {
		p, ok := of[j.Group]
		if !ok {
			p, ok = of[""]
		}
		units, name := j.CPUs, "cores"
		if p.GPUs {
			units, name = j.GPUs, "GPUs"
		}
		why := ""
		switch most := p.Nodes * p.PerNode; {
		case !ok:
			why = fmt.Sprintf("its partition %q has no nodes", j.Group)
		case units == 0:
			why = "it needs no " + name
		case units > most:
			why = fmt.Sprintf("it needs %d %s of %d", units, name, most)
		default:
			in.Log.Jobs = append(in.Log.Jobs, j)
			continue
		}
		in.Log.Broken = append(in.Log.Broken, joblog.Broken{Line: j.Line, Why: why})
	}
	if len(in.Log.Jobs) == 0 && len(l.Jobs) > 0 {
		first := in.Log.Broken[len(l.Broken)]
		return in, fmt.Errorf("%w: none of %d jobs can run there: line %d: %s", ErrInput, len(l.Jobs), first.Line, first.Why)
	}
	slices.SortStableFunc(in.Log.Broken, func(a, b joblog.Broken) int { return cmp.Compare(a.Line, b.Line) })
	return in, nil
}
