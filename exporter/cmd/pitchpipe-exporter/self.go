package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/hostfs"
	"pitchpipe/exporter/sampler"
)

// self is the exporter that runs, and the node as it sees it.
type self struct {
	with   equipment
	is     api.Exporter
	unkept atomic.Value // string: why the state was not kept the last time; nil = it was not tried
}

// node is the node as it is now: with what the graphics cards say, and with what does not
// answer at this moment.
func (s *self) node(ctx context.Context, snap *sampler.Snapshot) api.Node {
	out, is := s.with.about, s.is
	out.Sources = slices.Clone(out.Sources)
	if s.with.gpus.source != nil {
		answers := s.with.gpus.sources(ctx)
		out.Sources = append(slices.DeleteFunc(out.Sources, func(s api.Source) bool { return strings.HasPrefix(s.Name, "gpu/") }), answers...)
	}
	out.Sources = snap.Mute(out.Sources)
	is.StateErr, _ = s.unkept.Load().(string)
	is.Jobs = snap.Running
	out.Exporter = &is
	return out
}

func describeSelf(o options) api.Exporter {
	out := api.Exporter{
		UID: uint32(os.Geteuid()), Version: release(), Leaf: o.leaf, State: o.state,
		Capabilities: capabilities(hostfs.Root{}),
	}
	out.Program, _ = os.Executable() // empty with an error
	if o.root.Self() != os.Getpid() {
		out.Blind = "the exporter is in its own process namespace"
	}
	return out
}

// capabilities are those of this process that an exporter may need.
func capabilities(root hostfs.Root) []string {
	out, set := []string{}, root.Capabilities()
	for _, c := range []struct {
		name string
		bit  int
	}{
		{"cap_dac_read_search", unix.CAP_DAC_READ_SEARCH},
		{"cap_perfmon", unix.CAP_PERFMON},
		{"cap_sys_admin", unix.CAP_SYS_ADMIN},
		{"cap_sys_ptrace", unix.CAP_SYS_PTRACE},
	} {
		if set&(1<<c.bit) != 0 {
			out = append(out, c.name)
		}
	}
	return out
}
