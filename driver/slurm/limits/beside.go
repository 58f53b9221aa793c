package limits

import (
	"math/bits"
	"slices"

	"pitchpipe/driver/slurm/parse"
)

// Waiting is a job that is not among what is in use yet.
type Waiting struct {
	UID          uint32
	Account, QOS string   // empty = none
	Partitions   []string // that it may start in
	Size         Size
}

// sharing has those of the waiting jobs count that share the limits looked at next.
func (c *check) sharing(j Job, shares func(Waiting) bool) {
	c.beside = nil
	for _, w := range j.Beside {
		if shares(w) {
			c.beside = append(c.beside, w)
		}
	}
}

// below reports whether an account is the one of this ID, or below it. One that is not
// there counts as being below each.
func below(have parse.Assignments, name string, id int) bool {
	at := slices.IndexFunc(have.Associations, func(a parse.Association) bool { return a.Account == name && a.User == "" })
	for range len(have.Associations) {
		if at < 0 || have.Associations[at].ID == id {
			return true
		}
		parent := have.Associations[at].Parent
		if parent == 0 {
			return false
		}
		at = slices.IndexFunc(have.Associations, func(a parse.Association) bool { return a.ID == parent })
	}
	return true
}

// amounts are what a job of this size has of each resource, as far as that is known.
func (s Size) amounts() map[string]uint64 {
	if s.Whole {
		return map[string]uint64{"node": 1}
	}
	cores := uint64(max(s.Cores, 0))
	out := map[string]uint64{"cpu": cores, "node": 1, "billing": cores}
	if s.MiB > 0 {
		out["mem"] = uint64(s.MiB)
	}
	return out
}

func (s Size) minutes() uint64 {
	if s.Minutes <= 0 {
		return parse.Unlimited
	}
	return uint64(s.Minutes)
}

// plus and times stay at parse.Unlimited, which is the largest number.
func plus(a, b uint64) uint64 {
	if a > parse.Unlimited-b {
		return parse.Unlimited
	}
	return a + b
}

func times(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return parse.Unlimited
	}
	return low
}

// lasting is an amount for so many minutes; without end it is more than any limit.
func lasting(amount, minutes uint64) uint64 {
	if minutes == parse.Unlimited {
		return parse.Unlimited
	}
	return times(amount, minutes)
}
