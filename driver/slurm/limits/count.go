package limits

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"pitchpipe/driver/slurm/parse"
)

// group are the limits that count all jobs.
func (c *check) group(whose string, l parse.Limits) error {
	minutes, wall := c.minutes(), l.GrpWall
	for _, w := range c.beside {
		wall.Used = plus(wall.Used, w.Size.minutes())
	}
	running := c.others(l.GrpRunMinutes)
	return errors.Join(
		c.bounds(whose, "GrpTRES", l.Grp, once),
		c.bounds(whose, "GrpTRESMins", c.spent(l, running), minutes),
		c.bounds(whose, "GrpTRESRunMins", running, minutes),
		c.bound(whose, "GrpWall", wall, minutes),
	)
}

// single are the limits of one job.
func (c *check) single(whose string, l parse.Limits) error {
	as := func(most map[string]uint64) map[string]parse.Bound {
		out := map[string]parse.Bound{}
		for name, n := range most {
			out[name] = parse.Bound{Limit: n}
		}
		return out
	}
	beside := c.beside
	defer func() { c.beside = beside }()
	c.beside = nil // they are limits of one job
	err := errors.Join(
		c.bounds(whose, "MaxTRESPerJob", as(l.MaxJob), once),
		c.bounds(whose, "MaxTRESPerNode", as(l.MaxNode), once),
		c.bounds(whose, "MaxTRESMinsPerJob", as(l.MaxMinutes), c.minutes()),
		c.bound(whose, "MaxWall", parse.Bound{Limit: l.MaxWall}, c.minutes()),
	)
	for _, name := range slices.Sorted(maps.Keys(l.MinJob)) {
		if have, ok := c.amounts[name]; ok && have < l.MinJob[name] {
			err = errors.Join(err, &Exceeded{Whose: whose, Limit: "MinTRESPerJob=" + name, Value: l.MinJob[name], Wanted: have, Least: true})
		}
	}
	return err
}

func (c *check) minutes() uint64 { return c.size.minutes() }

// once stands for no minutes: the amount itself is limited.
const once = 0

// bounds compares each resource's limit with the job's amount of it, times so many
// minutes.
func (c *check) bounds(whose, limit string, all map[string]parse.Bound, minutes uint64) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b := all[name]
		if b.Limit == parse.Unlimited || !touched(name) {
			continue
		}
		amount, ok := c.amounts[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s has %s=%s %d, and what the job has of that is unknown: %w", whose, limit, name, b.Limit, ErrUnknown))
			continue
		}
		if minutes == once { // minutes of its own are spent, or nearly nothing
			b.Used -= min(b.Used, c.has[name])
		} else {
			amount = lasting(amount, minutes)
		}
		for _, w := range c.beside {
			w.Size.Whole = w.Size.Whole || c.whole(w.Partitions)
			add, known := w.Size.amounts()[name]
			if !known {
				return fmt.Errorf("%s has %s=%s %d, and what a job that waits has of that is unknown: %w", whose, limit, name, b.Limit, ErrUnknown)
			}
			if minutes != once {
				add = lasting(add, w.Size.minutes())
			}
			b.Used = plus(b.Used, add)
		}
		errs = append(errs, c.bound(whose, limit+"="+name, b, amount))
	}
	return errors.Join(errs...)
}

// touched reports whether a change of a job's size changes what it has of a resource.
func touched(resource string) bool {
	return slices.Contains([]string{"cpu", "mem", "node", "billing"}, resource)
}

func (c *check) bound(whose, limit string, b parse.Bound, wanted uint64) error {
	if b.Limit == parse.Unlimited || c.hidden[limit] {
		return nil
	}
	if c.seen != nil {
		c.seen[limit] = true
	}
	if b.Used > b.Limit || wanted > b.Limit-b.Used {
		return &Exceeded{Whose: whose, Limit: limit, Value: b.Limit, Used: b.Used, Wanted: wanted}
	}
	return nil
}

// whole reports whether a job of these partitions may get a whole node.
func (c *check) whole(partitions []string) bool {
	return slices.ContainsFunc(partitions, func(p string) bool { return c.exclusive[p] })
}

// others are minutes that running jobs may still use, without those of the job.
func (c *check) others(running map[string]parse.Bound) map[string]parse.Bound {
	out := maps.Clone(running)
	for name, b := range out {
		b.Used -= min(b.Used, times(c.has[name], c.left))
		out[name] = b
	}
	return out
}

// spent are minutes that were used, and where the cluster counts so those that running
// jobs may still use.
func (c *check) spent(l parse.Limits, running map[string]parse.Bound) map[string]parse.Bound {
	if !c.safe {
		return l.GrpMinutes
	}
	out := maps.Clone(l.GrpMinutes)
	for name, b := range out {
		b.Used = plus(b.Used, running[name].Used)
		out[name] = b
	}
	return out
}
