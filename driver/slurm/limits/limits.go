package limits

import (
	"errors"
	"fmt"
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
	// waits.
	Has Size

	// Safe: minutes that running jobs may still use count as used (the word safe of
	// AccountingStorageEnforce).
	Safe bool

	// Beside are other jobs that wait and will start whatever is used up by then. They
	// count as if they were in use, each where it shares the limit.
	Beside []Waiting
}

// Size is what the job would have, on one node.
type Size struct {
	Cores   int
	MiB     int64 // of memory, in all; 0 = not known
	Minutes int64 // of time limit; 0 = none

	// Whole: it gets all of a node, whatever it asked for, how much is unknown.
	Whole bool
}

// Exceeded is a limit that the job would not pass.
type Exceeded struct {
	Whose  string // such as: the association of user alice in account physics
	Limit  string // as sacctmgr calls it, such as GrpTRES=cpu
	Value  uint64
	Used   uint64 // by other jobs, with Job.Beside
	Wanted uint64 // by this one; parse.Unlimited where it has no time limit
	Least  bool   // Value is the least and not the most
	One    bool   // it is one of each job alone
}

// Error is a sentence.
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
	c := check{has: map[string]uint64{}, left: uint64(max(j.Has.Minutes, 0)), safe: j.Safe, hidden: map[string]bool{}, partQOS: map[string]string{}, exclusive: map[string]bool{}}
	for _, p := range partitions {
		c.partQOS[p.Name], c.exclusive[p.Name] = p.QOS, p.Exclusive
	}
	s.Whole = s.Whole || c.whole(j.Partitions)
	c.size, c.amounts = s, s.amounts()
	if j.Has.Cores > 0 {
		c.has = j.Has.amounts()
	}
	qos := []string{j.QOS}
	for _, name := range j.Partitions {
		i := slices.IndexFunc(partitions, func(p parse.Partition) bool { return p.Name == name })
		if i < 0 {
			return fmt.Errorf("partition %s is not there: %w", name, ErrUnknown)
		}
		if partitions[i].Weights != "" {
			delete(c.amounts, "billing")
		}
		qos = append(qos, partitions[i].QOS)
	}
	slices.Sort(qos)
	qos = slices.DeleteFunc(slices.Compact(qos), func(name string) bool { return name == "" })
	if s.Minutes <= 0 {
		c.size.Minutes = longest(have, qos, j)
	}
	for _, name := range qos {
		if err := c.qos(have, name, j); err != nil {
			return err
		}
	}
	for limit := range c.seen {
		c.hidden[limit] = true
	}
	return c.associations(have, j)
}

// longest is for how long a job without a time limit may run: Slurm gives it the
// shortest MaxWall when it starts. 0 = for ever.
func longest(have parse.Assignments, qos []string, j Job) int64 {
	most := parse.Unlimited
	for _, q := range have.QOS {
		if slices.Contains(qos, q.Name) {
			most = min(most, q.MaxWall)
		}
	}
	for _, a := range have.Associations {
		if a.Account == j.Account && a.User != "" && a.UID == j.UID {
			most = min(most, a.MaxWall)
		}
	}
	if most > math.MaxInt64 {
		return 0
	}
	return int64(most)
}

type check struct {
	size    Size
	amounts map[string]uint64 // of the job, by resource
	beside  []Waiting         // of Job.Beside those that share the limits looked at
	has     map[string]uint64 // that it has now
	left    uint64            // minutes for which it may have that
	safe    bool
	hidden  map[string]bool // limits that a QOS has, so that those of associations do not count
	seen    map[string]bool
	partQOS map[string]string // by partition

	exclusive map[string]bool // partitions whose jobs get whole nodes
}

func (c *check) qos(have parse.Assignments, name string, j Job) error {
	i := slices.IndexFunc(have.QOS, func(q parse.QOS) bool { return q.Name == name })
	if i < 0 {
		return fmt.Errorf("QOS %s is not there: %w", name, ErrUnknown)
	}
	q, whose := have.QOS[i], "QOS "+name
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	within := func(w Waiting) bool {
		return w.QOS == name || slices.ContainsFunc(w.Partitions, func(p string) bool { return c.partQOS[p] == name })
	}
	c.sharing(j, within)
	if err := errors.Join(c.group(whose, q.Limits), c.single(whose, q.Limits)); err != nil {
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
	c.sharing(j, func(w Waiting) bool { return within(w) && w.UID == j.UID })
	err := c.bounds(fmt.Sprintf("user %d in %s", j.UID, whose), "MaxTRESPerUser", user, once)
	c.sharing(j, func(w Waiting) bool { return within(w) && w.Account == j.Account })
	return errors.Join(err, c.bounds(fmt.Sprintf("account %s in %s", j.Account, whose), "MaxTRESPerAccount", account, once))
}

// associations are that of the user and those of the accounts above him.
func (c *check) associations(have parse.Assignments, j Job) error {
	own := func(a parse.Association) bool { return a.Account == j.Account && a.User != "" && a.UID == j.UID }
	var mine []parse.Association
	for _, a := range have.Associations {
		if own(a) && a.Partition != "" && slices.Contains(j.Partitions, a.Partition) {
			mine = append(mine, a)
		}
	}
	if len(mine) < len(j.Partitions) || len(mine) == 0 {
		for _, a := range have.Associations {
			if own(a) && a.Partition == "" {
				mine = append(mine, a)
			}
		}
	}
	if len(mine) == 0 {
		return fmt.Errorf("user %d has no association in account %q: %w", j.UID, j.Account, ErrUnknown)
	}
	c.sharing(j, func(w Waiting) bool { return w.UID == j.UID && w.Account == j.Account })
	for _, a := range mine {
		// What one job may have is the user's own, or came down to him from an account.
		whose := fmt.Sprintf("the association of user %s in account %s", a.User, a.Account)
		if err := errors.Join(c.group(whose, a.Limits), c.single(whose, a.Limits)); err != nil {
			return err
		}
	}
	return c.accounts(have, j)
}

// accounts climbs from an account to the root.
func (c *check) accounts(have parse.Assignments, j Job) error {
	name := j.Account
	at := slices.IndexFunc(have.Associations, func(a parse.Association) bool { return a.Account == name && a.User == "" })
	for range len(have.Associations) {
		if at < 0 {
			return fmt.Errorf("account %s, or one above it, is not there: %w", name, ErrUnknown)
		}
		a := have.Associations[at]
		c.sharing(j, func(w Waiting) bool { return below(have, w.Account, a.ID) })
		if err := c.group("account "+a.Account, a.Limits); err != nil {
			return err
		}
		if a.Parent == 0 {
			return nil
		}
		at = slices.IndexFunc(have.Associations, func(b parse.Association) bool { return b.ID == a.Parent })
	}
	return fmt.Errorf("account %s is above itself: %w", name, ErrUnknown)
}
