package slurmcluster

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"pitchpipe/test/sandbox"
)

// marker is in the environment of the daemons, with the folder as its value. Slurm
// does not hand it on to jobs, and a person who uses the cluster does not have it.
const marker = "PITCHPIPE_SLURMCLUSTER"

// sweep clears away clusters whose owners died.
func sweep(ctx context.Context) error {
	return sandbox.Sweep(filepath.Join(parent, prefix+"[0-9]*"), func(dir string) error {
		return remove(ctx, dir, nodeNames(dir, 64))
	})
}

// remove ends every process of a cluster and removes its control groups and its folder.
func remove(ctx context.Context, dir string, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return remains(dir, nodes).Remove(ctx)
}

// Leftovers lists what there is of a cluster: its folder, processes and control groups.
func Leftovers(dir string, nodes []string) []string { return remains(dir, nodes).List() }

// remains finds the daemons by the marker, and the processes of jobs by their control group
// or the node that Slurm gave them.
func remains(dir string, nodes []string) sandbox.Remains {
	return sandbox.Remains{
		Dir: dir, Marker: marker,
		Cgroups: func() []string {
			var out []string
			for _, n := range nodes {
				found, err := filepath.Glob(filepath.Join(sandbox.CgroupRoot, "*", "slurm_"+n))
				if err == nil {
					out = append(out, found...)
				}
			}
			return out
		},
		Belongs: func(p procfs.Proc, env map[string]string) bool {
			comm, _ := p.Comm() // it may be gone
			switch comm {
			case "srun": // of a step that someone waits for; it may outlive the cluster
				return strings.HasPrefix(env["SLURM_CONF"], dir+"/")
			case "slurmstepd": // it writes its title over its environment, and has logs open
				open, _ := p.FileDescriptorTargets()
				return slices.ContainsFunc(open, func(file string) bool { return strings.HasPrefix(file, dir+"/") })
			}
			return slices.Contains(nodes, env["SLURMD_NODENAME"])
		},
	}
}
