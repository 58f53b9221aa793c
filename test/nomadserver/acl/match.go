package acl

import (
	"slices"
	"strings"
)

// glob tells whether a name fits a pattern, in which * stands for anything.
func glob(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	if !strings.HasPrefix(name, parts[0]) {
		return false
	}
	name = name[len(parts[0]):]
	last := parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		i := strings.Index(name, p)
		if i < 0 {
			return false
		}
		name = name[i+len(p):]
	}
	return strings.HasSuffix(name, last)
}

// closest is the set of the name itself, or of the pattern that differs from it in the
// fewest letters. Between patterns that differ as much the first in the alphabet wins.
func closest(sets map[string][]string, name string) []string {
	if set, ok := sets[name]; ok && !strings.Contains(name, "*") {
		return set
	}
	best, found := "", false
	difference := func(pattern string) int { return len(name) - len(pattern) + strings.Count(pattern, "*") }
	for pattern := range sets {
		if !strings.Contains(pattern, "*") || !glob(pattern, name) {
			continue
		}
		if d := difference(pattern); !found || d < difference(best) || d == difference(best) && pattern < best {
			best, found = pattern, true
		}
	}
	return sets[best]
}

// namespace tells whether the rules allow something in a namespace; "*" asks for any.
func (r rules) namespace(name, capability string) bool {
	if name != "*" {
		return grants(closest(r.namespaces, name), capability)
	}
	for _, set := range r.namespaces {
		if grants(set, capability) {
			return true
		}
	}
	return false
}

// variable tells whether the rules allow something with a variable. A claim may read
// and list those of its own job.
func (r rules) variable(namespace, path, capability string, c *Claim) bool {
	sets := map[string][]string{}
	for name, paths := range r.variables {
		for spec, set := range paths {
			sets[name+"\x00"+spec] = set
		}
	}
	name := namespace + "\x00" + path
	if set, ok := sets[name]; ok && !strings.Contains(name, "*") {
		return grants(set, capability)
	}
	if c != nil && namespace == c.Namespace && (capability == "read" || capability == "list") {
		own := []string{"nomad/jobs", "nomad/jobs/" + c.Job, "nomad/jobs/" + c.Job + "/" + c.Group, "nomad/jobs/" + c.Job + "/" + c.Group + "/" + c.Task}
		if slices.Contains(own, path) {
			return true
		}
	}
	return grants(closest(sets, name), capability)
}

// beyond is what belongs to no namespace: "node:read" and the like.
func (r rules) beyond(capability string) bool {
	kind, verb, _ := strings.Cut(capability, ":")
	switch word := r.words[kind]; word {
	case "write":
		return true
	case "read":
		return verb == "read" || verb == "list"
	case "list":
		return verb == "list"
	default:
		return false
	}
}
