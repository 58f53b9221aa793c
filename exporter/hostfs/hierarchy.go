package hostfs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"
)

// Unified is the name of the v2 hierarchy among controllers.
const Unified = "unified"

// Hierarchy is one mounted cgroup tree.
type Hierarchy struct {
	Name        string   // its directory's name, Unified for v2
	Dir         string   // where its root is
	V2          bool     // the unified hierarchy
	Controllers []string // of v1: cpuacct, memory, …, systemd; of v2 the enabled ones
}

// Hierarchies finds the cgroup trees by their shape: v2 at the root, or v2 at unified/
// next to v1 trees named by their controllers. It returns nothing where there are none.
func (r Root) Hierarchies() []Hierarchy {
	var out []Hierarchy
	if h, ok := unified(r.Cgroup()); ok {
		return append(out, h)
	}
	if h, ok := unified(r.Cgroup(Unified)); ok {
		out = append(out, h)
	}
	entries, err := os.ReadDir(r.Cgroup())
	if err != nil {
		return out
	}
	seen := map[string]bool{}
	for _, e := range entries {
		// cpu and cpuacct are often links to one tree called cpu,cpuacct.
		dir, err := filepath.EvalSymlinks(r.Cgroup(e.Name()))
		if err != nil || seen[dir] || e.Name() == Unified {
			continue
		}
		if _, err := os.Stat(filepath.Join(dir, "cgroup.procs")); err != nil {
			continue
		}
		seen[dir] = true
		name := filepath.Base(dir)
		out = append(out, Hierarchy{Name: name, Dir: dir, Controllers: strings.Split(name, ",")})
	}
	return out
}

func unified(dir string) (Hierarchy, bool) {
	data, err := Read(filepath.Join(dir, "cgroup.controllers"))
	if err != nil {
		return Hierarchy{}, false
	}
	return Hierarchy{Name: Unified, Dir: dir, V2: true, Controllers: strings.Fields(string(data))}, true
}

// Has reports whether a controller lives in the hierarchy.
func (h Hierarchy) Has(controller string) bool { return slices.Contains(h.Controllers, controller) }

// PerfHierarchy is where perf looks for cgroups: its own v1 tree if one is mounted, else
// v2.
func PerfHierarchy(all []Hierarchy) (h Hierarchy, ok bool) {
	for _, o := range all {
		switch {
		case o.Has("perf_event") && !o.V2:
			return o, true
		case o.V2:
			h, ok = o, true
		}
	}
	return h, ok
}

// Lists reports whether a line of /proc/<pid>/cgroup is about the hierarchy.
func (h Hierarchy) Lists(line procfs.Cgroup) bool {
	if h.V2 || len(line.Controllers) == 0 {
		return h.V2 && len(line.Controllers) == 0
	}
	return slices.ContainsFunc(line.Controllers, func(c string) bool {
		return h.Has(strings.TrimPrefix(c, "name="))
	})
}

// Memberships reads the cgroups of a process off /proc/<pid>/cgroup.
func (r Root) Memberships(pid int) ([]procfs.Cgroup, error) {
	fs, err := procfs.NewFS(r.Proc())
	if err != nil {
		return nil, err
	}
	p, err := fs.Proc(pid)
	if err != nil {
		return nil, err
	}
	return p.Cgroups()
}
