package schedule

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/nomad/api"
)

// near tells whether the node is where the job wants to be.
func (r *room) near(j *api.Job) bool {
	if p := *j.NodePool; p != "" && p != "all" && p != r.node.Pool {
		return false
	}
	return len(j.Datacenters) == 0 || slices.ContainsFunc(j.Datacenters, func(d string) bool {
		ok, err := path.Match(d, r.node.Datacenter)
		return err == nil && ok
	})
}

// unfit says why the node may not have the group, in Nomad's words, "" where it may.
func (r *room) unfit(j *api.Job, g *api.TaskGroup) string {
	constraints := slices.Concat(j.Constraints, g.Constraints)
	for _, t := range g.Tasks {
		if !slices.Contains(r.node.Drivers, t.Driver) {
			return "missing drivers"
		}
		constraints = append(constraints, t.Constraints...)
	}
	for _, c := range constraints {
		if !r.meets(c) {
			if c.Operand == "is_set" || c.Operand == "is_not_set" {
				return c.LTarget + " " + c.Operand
			}
			return c.LTarget + " " + c.Operand + " " + c.RTarget
		}
	}
	return ""
}

func (r *room) meets(c *api.Constraint) bool {
	left, ok := r.resolve(c.LTarget)
	right, _ := r.resolve(c.RTarget)
	switch c.Operand {
	case "distinct_hosts", "distinct_property":
		return true // with one node it is the count that decides
	case "is_set":
		return ok
	case "is_not_set":
		return !ok
	case "!=", "not":
		return left != right
	}
	if !ok {
		return false
	}
	switch c.Operand {
	case "", "=", "==", "is":
		return left == right
	case "<", "<=", ">", ">=":
		return ordered(c.Operand, left, right)
	case "regexp":
		re, err := regexp.Compile(right)
		return err == nil && re.MatchString(left)
	case "set_contains", "set_contains_all":
		return contains(left, right, true)
	case "set_contains_any":
		return contains(left, right, false)
	}
	return true
}

// resolve replaces ${attr.x} by the node's value, and leaves a literal alone.
func (r *room) resolve(target string) (string, bool) {
	name, ok := strings.CutPrefix(target, "${")
	if !ok {
		return target, true
	}
	v, ok := r.node.Attributes[strings.TrimSuffix(name, "}")]
	return v, ok
}

func ordered(op, left, right string) bool {
	order := cmp.Compare(left, right)
	a, errA := strconv.ParseFloat(left, 64)
	b, errB := strconv.ParseFloat(right, 64)
	if errA == nil && errB == nil {
		order = cmp.Compare(a, b)
	}
	switch op {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func contains(left, right string, all bool) bool {
	var have []string
	for s := range strings.SplitSeq(left, ",") {
		have = append(have, strings.TrimSpace(s))
	}
	for want := range strings.SplitSeq(right, ",") {
		found := slices.Contains(have, strings.TrimSpace(want))
		if found && !all {
			return true
		}
		if !found && all {
			return false
		}
	}
	return all
}
