package nomadagent

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"pitchpipe/test/sandbox"
)

// marker is in the environment of the agent and of all that it starts, with the folder
// as its value.
const marker = "PITCHPIPE_NOMADAGENT"

// sweep removes agents whose owners died.
func sweep(ctx context.Context) error {
	return sandbox.Sweep(filepath.Join(parent, prefix+"[0-9]*"), func(dir string) error { return remove(ctx, dir) })
}

// remove ends every process of an agent and removes its mounts, its control groups and its
// folder.
func remove(ctx context.Context, dir string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return remains(dir).Remove(ctx)
}

// remains finds processes by the marker, which jobs inherit, or by the control group of
// an allocation, which stays where a job clears its environment. It reads the allocations
// once: with the folder their ids are lost.
func remains(dir string) sandbox.Remains {
	allocs := allocations(dir)
	return sandbox.Remains{Dir: dir, Marker: marker, Cgroups: func() []string {
		out := cgroups(allocs)
		if _, err := os.Lstat(cpuset(dir)); err == nil {
			out = append(out, cpuset(dir))
		}
		return out
	}}
}

// allocations are the ids of all that the agent has ever had: those with a folder, and
// those that its log names. A client that is killed while it removes an allocation, and one
// that finds a task without its executor, leave cgroups behind; only the log names these.
func allocations(dir string) []string {
	had := map[string]struct{}{}
	if entries, err := os.ReadDir(filepath.Join(dir, "client", "alloc")); err == nil {
		for _, e := range entries {
			had[e.Name()] = struct{}{}
		}
	}
	if log, err := os.Open(filepath.Join(dir, "client.log")); err == nil {
		defer func() { _ = log.Close() }()
		for lines := bufio.NewReader(log); err == nil; {
			var line []byte
			line, err = lines.ReadSlice('\n') // the rest of a long one is another
			if _, rest, named := bytes.Cut(line, []byte("alloc_id=")); named && len(rest) >= idLength {
				had[string(rest[:idLength])] = struct{}{}
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				err = nil
			}
		}
	}
	return slices.Sorted(maps.Keys(had))
}

// idLength is that of an allocation's id.
const idLength = 36

// cgroups are those of the allocations' tasks, in either version's places.
func cgroups(allocs []string) []string {
	var out []string
	for _, place := range []string{"*/nomad", "nomad.slice/share.slice", "nomad.slice/reserve.slice"} {
		found, err := filepath.Glob(filepath.Join(sandbox.CgroupRoot, place, "*.*"))
		if err != nil {
			continue
		}
		for _, cg := range found {
			id, _, _ := strings.Cut(filepath.Base(cg), ".")
			if info, err := os.Stat(cg); err == nil && info.IsDir() && slices.Contains(allocs, id) {
				out = append(out, cg)
			}
		}
	}
	return out
}
