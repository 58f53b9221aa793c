package limits

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"pitchpipe/driver/slurm/parse"
)

// ErrUnknown says that what is known does not tell whether a limit is passed.
var ErrUnknown = errors.New("limits of the job are not known")

// Job is whose limits are looked at.
type Job struct {
	UID          uint32
	Account, QOS string   // empty = none
	Partitions   []string // that it may start in

	// Has is what a job that runs has: it is among what is in use, and would be given
	// back. Its minutes are those that it has left. The zero value is that of a job that
	// waits. For one of Beside it is what it will have.
	Has Size

	// Safe: minutes that running jobs may still use count as used (the word safe of
	// AccountingStorageEnforce).
	Safe bool

	// Beside are other jobs that wait and will start whatever is used up by then. They
	// count as if they were in use, each where it shares the limit.
	Beside []Job
}

// Size is what the job would have, on one node.
type Size struct {
	Cores   int
	MiB     int64 // of memory, in all; 0 = not known
	Minutes int64 // of time limit; 0 = none

	// Whole: it gets all of a node, whatever it asked for, how much is unknown.
	Whole bool

	weighed bool // what it is billed is unknown
}

// Exceeded is a limit that the job would not pass.
type Exceeded struct {
	Whose  string // such as: the association of user alice in account physics
	Limit  string // as sacctmgr calls it, such as GrpTRES=cpu
	Value  uint64
	Used   uint64 // by other jobs, including Job.Beside
	Wanted uint64 // by this one; parse.Unlimited where it has no time limit
	Least  bool   // Value is the least and not the most
	One    bool   // it applies to each job by itself
}

// Error returns the refusal as a sentence.
func (e *Exceeded) Error() string {
	wanted := strconv.FormatUint(e.Wanted, 10)
	if e.Wanted == parse.Unlimited {
		wanted = "minutes without end"
	}
	if e.Least {
		return fmt.Sprintf("%s asks for at least %s %d, and the job would have %s", e.Whose, e.Limit, e.Value, wanted)
	}
	if e.One {
		return fmt.Sprintf("%s has %s %d, and the job would have %s", e.Whose, e.Limit, e.Value, wanted)
	}
	return fmt.Sprintf("%s has %s %d, of which other jobs use %d, and the job would add %s", e.Whose, e.Limit, e.Value, e.Used, wanted)
}

// Check returns nil where the job with this size passes every limit, an *Exceeded, or
// an error that is ErrUnknown.
func Check(have parse.Assignments, partitions []parse.Partition, j Job, s Size) error {
	c := check{job: j, size: s, partitions: map[string]parse.Partition{}}
	for _, p := range partitions {
		c.partitions[p.Name] = p
	}
	names := []string{j.QOS}
	for _, name := range j.Partitions {
		p, ok := c.partitions[name]
		if !ok {
			return fmt.Errorf("partition %s is not there: %w", name, ErrUnknown)
		}
		c.size.Whole = c.size.Whole || p.Exclusive
		c.size.weighed = c.size.weighed || p.Weights != ""
		names = append(names, p.QOS)
	}
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
	var all []parse.QOS
	for _, name := range names {
		i := slices.IndexFunc(have.QOS, func(q parse.QOS) bool { return q.Name == name })
		if i < 0 {
			return fmt.Errorf("QOS %s is not there: %w", name, ErrUnknown)
		}
		all = append(all, have.QOS[i])
	}
	if s.Minutes <= 0 {
		c.size.Minutes = longest(have, all, j)
	}
	hidden := map[string]bool{}
	for _, q := range all {
		if err := c.qos(q); err != nil {
			return err
		}
		for limit, b := range q.Limits {
			hidden[limit] = hidden[limit] || b.Limit != parse.Unlimited
		}
	}
	c.hidden = hidden
	return c.associations(have)
}

// longest is how long a job without a time limit may run: Slurm gives it the
// shortest MaxWall when it starts. 0 = for ever.
func longest(have parse.Assignments, qos []parse.QOS, j Job) int64 {
	most := parse.Unlimited
	shorter := func(l parse.Limits) {
		if b, ok := l["MaxWall"]; ok {
			most = min(most, b.Limit)
		}
	}
	for _, q := range qos {
		shorter(q.Limits)
	}
	for _, a := range have.Associations {
		if j.owns(a) {
			shorter(a.Limits)
		}
	}
	if most > math.MaxInt64 {
		return 0
	}
	return int64(most)
}

// owns reports whether an association is the one of the job's user.
func (j Job) owns(a parse.Association) bool {
	return a.Account == j.Account && a.User != "" && a.UID == j.UID
}

type check struct {
	job        Job
	size       Size
	partitions map[string]parse.Partition
	hidden     map[string]bool // limits that a QOS has, so that those of associations do not count
}

func (c *check) qos(q parse.QOS) error {
	j, whose := c.job, "QOS "+q.Name
	within := func(w Job) bool {
		return w.QOS == q.Name || slices.ContainsFunc(w.Partitions, func(p string) bool { return c.partitions[p].QOS == q.Name })
	}
	if err := c.compare(whose, q.Limits, within); err != nil {
		return err
	}
	user, ok := q.Users[strconv.FormatUint(uint64(j.UID), 10)]
	if !ok {
		return fmt.Errorf("%s does not say what user %d may use of it: %w", whose, j.UID, ErrUnknown)
	}
	account, ok := q.Accounts[j.Account]
	if !ok && j.Account != "" {
		return fmt.Errorf("%s does not say what account %s may use of it: %w", whose, j.Account, ErrUnknown)
	}
	return errors.Join(
		c.compare(fmt.Sprintf("user %d in %s", j.UID, whose), user, func(w Job) bool { return within(w) && w.UID == j.UID }),
		c.compare(fmt.Sprintf("account %s in %s", j.Account, whose), account, func(w Job) bool { return within(w) && w.Account == j.Account }),
	)
}

// associations checks the limits of the user's association and of the accounts above.
func (c *check) associations(have parse.Assignments) error {
	j := c.job
	var mine []parse.Association
	for _, a := range have.Associations {
		if j.owns(a) && a.Partition != "" && slices.Contains(j.Partitions, a.Partition) {
			mine = append(mine, a)
		}
	}
	if len(mine) < len(j.Partitions) || len(mine) == 0 {
		for _, a := range have.Associations {
			if j.owns(a) && a.Partition == "" {
				mine = append(mine, a)
			}
		}
	}
	if len(mine) == 0 {
		return fmt.Errorf("user %d has no association in account %q: %w", j.UID, j.Account, ErrUnknown)
	}
	for _, a := range mine {
		// What one job may have is the user's own, or came down to him from an account.
		whose := fmt.Sprintf("the association of user %s in account %s", a.User, a.Account)
		if err := c.compare(whose, a.Limits, func(w Job) bool { return w.UID == j.UID && w.Account == j.Account }); err != nil {
			return err
		}
	}
	above, unknown := chain(have, j.Account)
	for _, a := range above {
		group := maps.Clone(a.Limits)
		maps.DeleteFunc(group, func(limit string, _ parse.Bound) bool { return !counts(limit) })
		err := c.compare("account "+a.Account, group, func(w Job) bool {
			over, unknown := chain(have, w.Account)
			return unknown != nil || slices.ContainsFunc(over, func(b parse.Association) bool { return b.ID == a.ID })
		})
		if err != nil {
			return err
		}
	}
	return unknown
}

// chain is an account and those above it, up to the root.
func chain(have parse.Assignments, account string) (out []parse.Association, err error) {
	next := func(a parse.Association) bool { return a.Account == account && a.User == "" }
	for range len(have.Associations) {
		i := slices.IndexFunc(have.Associations, next)
		if i < 0 {
			return out, fmt.Errorf("account %s, or one above it, is not there: %w", account, ErrUnknown)
		}
		a := have.Associations[i]
		out = append(out, a)
		if a.Parent == 0 {
			return out, nil
		}
		next = func(b parse.Association) bool { return b.ID == a.Parent }
	}
	return out, fmt.Errorf("account %s is above itself: %w", account, ErrUnknown)
}
