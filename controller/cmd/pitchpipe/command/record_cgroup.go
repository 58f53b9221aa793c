package command

import (
	"context"
	"errors"

	"pitchpipe/controller/record"
	"pitchpipe/driver/local/cgroup"
)

// runCgroups gives each recorded run a cgroup of its own, as the local driver does: perf
// counts by it, and the exporter knows the run by its name.
type runCgroups struct{ tree cgroup.Tree }

// Create implements record.Cgroups.
func (c runCgroups) Create(ctx context.Context, name string, cpus []int) (record.Cgroup, error) {
	leaf, err := c.tree.Create(ctx, name, cgroup.Limits{CPUs: cpus})
	if err != nil {
		return nil, err
	}
	return runCgroup{leaf}, nil
}

type runCgroup struct{ cgroup.Leaf }

// Close implements record.Cgroup.
func (c runCgroup) Close(ctx context.Context) error { return errors.Join(c.Kill(ctx), c.Remove(ctx)) }

// runCgroups are cgroups below root, or none and why.
func (o recording) runCgroups() (record.Cgroups, string) {
	if o.cgroups == "none" {
		return nil, "turned off"
	}
	tree := cgroup.Probe(o.cgroups)
	if tree.Kind == cgroup.None {
		return nil, tree.Reason
	}
	return runCgroups{tree}, ""
}
