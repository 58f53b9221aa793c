package command

import (
	"context"
	"errors"

	"pitchpipe/controller/record"
	"pitchpipe/driver/local/cgroup"
)

// cgroups gives each recorded run a cgroup of its own, as the local driver does: perf
// counts by it, and the exporter knows the run by its name.
type cgroups struct{ tree cgroup.Tree }

func (l cgroups) Open(ctx context.Context, name string, cpus []int) (record.Room, error) {
	leaf, err := l.tree.Create(ctx, name, cgroup.Limits{CPUs: cpus})
	if err != nil {
		return nil, err
	}
	return room{leaf}, nil
}

type room struct{ leaf cgroup.Leaf }

func (r room) Add(pid int) error { return r.leaf.Add(pid) }

func (r room) Close(ctx context.Context) error {
	return errors.Join(r.leaf.Kill(ctx), r.leaf.Remove(ctx))
}

// rooms are cgroups below root, or none and why.
func (o recording) rooms() (record.Rooms, string) {
	if o.cgroups == "none" {
		return nil, "turned off"
	}
	tree := cgroup.Probe(o.cgroups)
	if tree.Kind == cgroup.None {
		return nil, tree.Reason
	}
	return cgroups{tree}, ""
}
