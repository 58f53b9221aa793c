package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
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
	if root == "" {
		t.Reason = "cgroups are switched off"
		return t
	}
	if exists(filepath.Join(root, "cgroup.controllers")) {
		return probeV2(t)
	}
	var why []error
	t.Cpuset = try(&why, filepath.Join(root, "cpuset"), "cpuset.cpus")
	t.Memory = try(&why, filepath.Join(root, "memory"), "memory.limit_in_bytes")
	unified := filepath.Join(root, "unified")
	if exists(filepath.Join(unified, "cgroup.controllers")) && try(&why, unified, "cgroup.procs") {
		t.Unified = unified
	}
	switch {
	case t.Unified != "":
		t.Kind = Hybrid
	case t.Cpuset || t.Memory:
		t.Kind = V1
	}
	t.Reason = sentence(why)
	return t
}

func probeV2(t Tree) Tree {
	var why []error
	if !try(&why, t.Root, "cgroup.procs") {
		t.Reason = sentence(why)
		return t
	}
	// To be moved into a leaf, a process must be allowed to leave where it is: in a
	// delegated tree whoever may write the root's own list moves what is below it.
	if err := unix.Access(filepath.Join(t.Root, "cgroup.procs"), unix.W_OK); err != nil {
		t.Reason = fmt.Sprintf("moving processes in %s: %v", t.Root, err)
		return t
	}
	t.Kind, t.Unified = V2, t.Root
	why = t.handDownAll()
	handed := t.handed()
	t.Cpuset, t.Memory = slices.Contains(handed, "cpuset"), slices.Contains(handed, "memory")
	t.Reason = sentence(why)
	return t
}

// handDownAll has root and parent hand the controllers down, which is how these
// reach the leaves, and tells what could not be.
func (t Tree) handDownAll() (why []error) {
	if err := os.Mkdir(filepath.Join(t.Root, Parent), 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return []error{err}
	}
	for _, dir := range []string{t.Root, filepath.Join(t.Root, Parent)} {
		for _, c := range []string{"cpuset", "memory"} {
			if err := handDown(dir, c); err != nil {
				why = append(why, err)
			}
		}
	}
	return why
}

// handed lists the controllers that leaves have.
func (t Tree) handed() []string {
	return words(filepath.Join(t.Root, Parent, "cgroup.subtree_control"))
}

func handDown(dir, controller string) error {
	file := filepath.Join(dir, "cgroup.subtree_control")
	if slices.Contains(words(file), controller) {
		return nil
	}
	if !slices.Contains(words(filepath.Join(dir, "cgroup.controllers")), controller) {
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

// try makes the parent in the hierarchy and reports whether it is usable.
func try(why *[]error, hierarchy, file string) bool {
	if !exists(filepath.Join(hierarchy, file)) {
		*why = append(*why, fmt.Errorf("no %s in %s", file, hierarchy))
		return false
	}
	dir := filepath.Join(hierarchy, Parent)
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		*why = append(*why, err)
		return false
	}
	if err := unix.Access(dir, unix.W_OK); err != nil {
		*why = append(*why, fmt.Errorf("writing %s: %w", dir, err))
		return false
	}
	return true
}

// CPUs lists the CPUs that leaves can have, or nil where nobody says.
func (t Tree) CPUs() []int {
	for _, f := range []string{
		filepath.Join(t.Root, "cpuset", "cpuset.effective_cpus"),
		filepath.Join(t.Root, "cpuset", "cpuset.cpus"),
		filepath.Join(t.Root, Parent, "cpuset.cpus.effective"),
	} {
		if data, err := os.ReadFile(f); t.Cpuset && err == nil {
			if cpus, err := ParseList(strings.TrimSpace(string(data))); err == nil && len(cpus) > 0 {
				return cpus
			}
		}
	}
	return nil
}

// ParseList reads a list of CPUs as the kernel writes it, such as 0-3,8.
func ParseList(text string) ([]int, error) {
	var out []int
	if text == "" {
		return out, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			return nil, fmt.Errorf("list of CPUs %q: %w", text, err)
		}
		b := a
		if isRange {
			if b, err = strconv.Atoi(to); err != nil {
				return nil, fmt.Errorf("list of CPUs %q: %w", text, err)
			}
		}
		if a < 0 || b < a || b > 1<<20 {
			return nil, fmt.Errorf("list of CPUs %q: %d-%d is no range", text, a, b)
		}
		for c := a; c <= b; c++ {
			out = append(out, c)
		}
	}
	return out, nil
}

// FormatList writes a list of CPUs as the kernel reads it.
func FormatList(cpus []int) string {
	parts := make([]string, len(cpus))
	for i, c := range cpus {
		parts[i] = strconv.Itoa(c)
	}
	return strings.Join(parts, ",")
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func words(file string) []string {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	return strings.Fields(string(data))
}

func sentence(why []error) string {
	parts := make([]string, len(why))
	for i, err := range why {
		parts[i] = err.Error()
	}
	return strings.Join(parts, "; ")
}
