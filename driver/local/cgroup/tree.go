package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"pitchpipe/exporter/hostfs"
)

// Parent is the directory of all leaves in every hierarchy.
const Parent = "pitchpipe"

// Kind is how cgroups are mounted.
type Kind string

// The kinds.
const (
	None   Kind = "none"
	V1     Kind = "v1"
	V2     Kind = "v2"
	Hybrid Kind = "hybrid"
)

// Tree is what a machine offers. The zero Tree offers nothing.
type Tree struct {
	Root    string `json:"root"`
	Kind    Kind   `json:"kind"`
	Cpuset  bool   `json:"cpuset"`  // CPUs can be confined
	Memory  bool   `json:"memory"`  // memory limits are enforced by the kernel
	Unified string `json:"unified"` // root of the unified hierarchy, where there is one
	Reason  string `json:"reason"`  // why something is not offered, empty when all is
}

// Probe looks at the cgroup mount at root. It makes the parent directory in each
// hierarchy, which is how it finds out what this process may do.
func Probe(root string) Tree {
	t := Tree{Root: root, Kind: None}
	var why []error
	switch unified := filepath.Join(root, "unified"); {
	case root == "":
		why = []error{errors.New("cgroups are switched off")}
	case exists(filepath.Join(root, "cgroup.controllers")):
		// A process can move into a leaf only if it may leave its present cgroup: in a
		// delegated tree a user who may write the root's list can move what is below it.
		procs := filepath.Join(root, "cgroup.procs")
		if err := unix.Access(procs, unix.W_OK); err != nil {
			why = append(why, fmt.Errorf("moving processes in %s: %w", root, err))
		} else if err := parent(root, "cgroup.procs"); err != nil {
			why = append(why, err)
		} else {
			t.Kind, t.Unified = V2, root
			why = t.prepare()
			t = t.offered()
		}
	default:
		err1, err2 := parent(filepath.Join(root, "cpuset"), "cpuset.cpus"), parent(filepath.Join(root, "memory"), "memory.limit_in_bytes")
		t.Cpuset, t.Memory = err1 == nil, err2 == nil
		if t.Cpuset || t.Memory {
			t.Kind = V1
		}
		why = append(why, err1, err2)
		if exists(filepath.Join(unified, "cgroup.controllers")) {
			err := parent(unified, "cgroup.procs")
			if err == nil {
				t.Kind, t.Unified = Hybrid, unified
			}
			why = append(why, err)
		}
	}
	if err := errors.Join(why...); err != nil {
		t.Reason = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return t
}

// parent makes the parent in a hierarchy that has the file, and says why it cannot be used.
func parent(hierarchy, file string) error {
	if !exists(filepath.Join(hierarchy, file)) {
		return fmt.Errorf("no %s in %s", file, hierarchy)
	}
	dir := filepath.Join(hierarchy, Parent)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return fmt.Errorf("writing %s: %w", dir, err)
	}
	return nil
}

// controller is the root of the hierarchy that a controller is in.
func (t Tree) controller(name string) string {
	if t.Kind == V2 {
		return t.Unified
	}
	return filepath.Join(t.Root, name)
}

// hierarchies are the roots below which a leaf is made, the unified one last. Accounting and
// perf of version 1 want the leaf too, wherever they are mounted.
func (t Tree) hierarchies() (out []string) {
	for name, wanted := range map[string]bool{"cpuset": t.Cpuset, "memory": t.Memory, "cpuacct": true, "perf_event": true} {
		root := filepath.Join(t.Root, name)
		if wanted && (t.Kind == V1 || t.Kind == Hybrid) && exists(filepath.Join(root, "cgroup.procs")) {
			out = append(out, root)
		}
	}
	slices.Sort(out)
	if t.Unified != "" {
		out = append(out, t.Unified)
	}
	return out
}

// prepare makes the parents, and what leaves need of them: in version 2 root and parent hand
// the controllers down, in version 1 a cpuset has no CPU and no memory node until it is given
// some. It returns what could not be done.
func (t Tree) prepare() (why []error) {
	for _, root := range t.hierarchies() {
		if err := os.Mkdir(filepath.Join(root, Parent), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return []error{err}
		}
	}
	if t.Kind == V2 {
		for _, dir := range []string{t.Root, filepath.Join(t.Root, Parent)} {
			why = append(why, handDown(dir, "cpuset"), handDown(dir, "memory"))
		}
	} else if t.Cpuset {
		for _, name := range []string{"cpuset.mems", "cpuset.cpus"} {
			above, err := os.ReadFile(filepath.Join(t.Root, "cpuset", name))
			if have, _ := words(filepath.Join(t.Root, "cpuset", Parent, name)); err == nil && len(have) == 0 {
				err = write(filepath.Join(t.Root, "cpuset", Parent, name), string(above))
			}
			why = append(why, err)
		}
	}
	return slices.DeleteFunc(why, func(err error) bool { return err == nil })
}

// offered is the tree with the controllers that leaves have now.
func (t Tree) offered() Tree {
	if t.Kind == V2 {
		handed, _ := words(filepath.Join(t.Root, Parent, "cgroup.subtree_control"))
		t.Cpuset, t.Memory = slices.Contains(handed, "cpuset"), slices.Contains(handed, "memory")
	}
	return t
}

func handDown(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if have, _ := words(file); slices.Contains(have, controller) {
		return nil
	}
	if have, _ := words(filepath.Join(dir, "cgroup.controllers")); !slices.Contains(have, controller) {
		return fmt.Errorf("no controller %s in %s", controller, dir)
	}
	err := os.WriteFile(file, []byte("+"+controller), 0o644)
	if errors.Is(err, unix.EBUSY) {
		// Only the real root may have both processes and children with controllers.
		return fmt.Errorf("handing down %s: %w: processes are in %s itself; start them in a cgroup below it", controller, err, dir)
	}
	if err != nil {
		return fmt.Errorf("handing down %s: %w", controller, err)
	}
	return nil
}

// CPUs lists the CPUs that leaves can have, or nil where no file says.
func (t Tree) CPUs() []int {
	for _, f := range []string{"cpuset/cpuset.effective_cpus", "cpuset/cpuset.cpus", Parent + "/cpuset.cpus.effective"} {
		if data, err := os.ReadFile(filepath.Join(t.Root, f)); t.Cpuset && err == nil {
			if cpus, err := hostfs.CPUList(string(data)); err == nil && len(cpus) > 0 {
				return cpus
			}
		}
	}
	return nil
}

// FormatList writes a list of CPUs as the kernel reads it.
func FormatList(cpus []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(cpus), " ", ","), "[]")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func words(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	return strings.Fields(string(data)), err
}

// write writes a file that the kernel made, and makes none.
func write(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}
