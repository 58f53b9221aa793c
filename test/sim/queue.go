package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pitchpipe/driver"
)

// first finds the job that is next in a queue, and the node that has room for it, -1 where none
// has: it keeps those behind it waiting. A held job counts for nothing, but for the target,
// whose hold a change would end. There is no next one where the queue has only held jobs.
func first(now time.Time, queue []*job, free []driver.Room, target *job) (next, on int) {
	next = slices.IndexFunc(queue, func(j *job) bool { return j == target || !j.view.NotBefore.After(now) })
	if next < 0 {
		return -1, -1
	}
	want := queue[next].resources(queue[next].view.Change).Room()
	return next, slices.IndexFunc(free, func(r driver.Room) bool { return r.Holds(want) })
}

// rooms are what is free on the nodes.
func (c *Cluster) rooms() (out []driver.Room) {
	for _, n := range c.nodes {
		out = append(out, n.free)
	}
	return out
}

// schedule starts what fits, and says what the others wait for.
func (c *Cluster) schedule() {
	next, on := first(c.now, c.queue, c.rooms(), nil)
	for ; on >= 0; next, on = first(c.now, c.queue, c.rooms(), nil) {
		j := c.queue[next]
		c.leaveQueue(j)
		c.begin(j, c.nodes[on])
	}
	for i, j := range c.queue {
		switch {
		case j.view.NotBefore.After(c.now):
			j.view.Detail = "waits until " + j.view.NotBefore.UTC().Format(time.RFC3339)
		case i == next:
			j.view.Detail = "waits for room"
		default:
			j.view.Detail = "waits for the jobs before it"
		}
	}
}

// enqueue lets a job wait for its next attempt.
func (c *Cluster) enqueue(j *job, cause driver.Cause, intent string) {
	j.view.State, j.view.Node, j.view.Detail = driver.Pending, "", ""
	j.cause, j.intent = cause, intent
	if d := j.act.QueueWait; d > 0 && j.view.Attempt > 0 {
		j.view.NotBefore = c.now.Add(d)
		c.at(j.view.NotBefore, c.schedule)
	}
	c.queue = append(c.queue, j)
	c.changed(j)
	c.schedule()
}

// leaveQueue takes a job out of the queue, where it is in it.
func (c *Cluster) leaveQueue(j *job) {
	c.queue = slices.DeleteFunc(c.queue, func(q *job) bool { return q == j })
}

// canHold reports whether any node could ever hold the resources.
func (c *Cluster) canHold(want driver.Resources) error {
	if slices.ContainsFunc(c.nodes, func(n *node) bool { return want.Cores <= n.spec.Cores && want.MemoryBytes <= n.spec.MemoryBytes }) {
		return nil
	}
	return fmt.Errorf("%w: no node has %d cores and %d bytes of memory", driver.ErrInvalid, want.Cores, want.MemoryBytes)
}

// grow refuses more than an attempt has where its job would have to wait for that: behind
// those that wait, or since others that are being moved will have it.
func (c *Cluster) grow(r *run, want driver.Room) error {
	has := r.took.Room()
	if slices.ContainsFunc(c.queue, func(j *job) bool { return !j.view.NotBefore.After(c.now) }) {
		return driver.Grow(has, want)
	}
	var nodes []driver.Room
	for _, n := range c.nodes {
		free := n.free
		if n == r.node {
			free = free.Plus(has)
		}
		for _, other := range c.jobs {
			if m := other.intents.Moving; m != nil && !m.Queued && other.runs[len(other.runs)-1].node == n {
				free = free.Minus(more(other.current(), other.resources(m.Intent.Change).Room()))
			}
		}
		nodes = append(nodes, free)
	}
	return driver.Grow(has, want, nodes...)
}

// more is what a job that is being moved will take in addition to what it has; r is its
// attempt, nil between two.
func more(r *run, to driver.Room) driver.Room {
	if r == nil {
		return to
	}
	to = to.Minus(r.took.Room())
	return driver.Room{Cores: max(to.Cores, 0), Memory: max(to.Memory, 0)}
}

// Outlook implements driver.Driver. A job that is restarted gives up its room and
// queues again at the end, so that its wait is not zero where others wait.
func (c *Cluster) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	return about(ctx, c, OpOutlook, id, func(j *job) (out driver.Outlook, err error) {
		if j.view.State.Ended() {
			return out, nil
		}
		if at := j.view.Submitted.Add(j.act.ClosedAt); j.act.ClosedAt > 0 && at.After(c.now) {
			out.Closed, out.ClosedBy = at, j.act.ClosedBy
		}
		out.Wait = c.wait(j)
		return out, nil
	})
}

// departure is room that becomes free at a time that is known.
type departure struct {
	at   time.Time
	node int
	room driver.Room
}

// wait is how long the job would wait for room if it left its node now, or keeps
// waiting where it waits already; nil where the time limits do not tell. The queue is played
// through by what the jobs declared.
func (c *Cluster) wait(j *job) *time.Duration {
	if d := j.act.QueueWait; d > 0 && j.view.Attempt > 0 {
		if j.view.State == driver.Pending {
			d = max(0, j.view.NotBefore.Sub(c.now))
		}
		return &d
	}
	now, queue, free := c.now, slices.Clone(c.queue), c.rooms()
	var leave []departure
	takes := func(from time.Time, node int, took driver.Resources) {
		if took.TimeLimit > 0 {
			leave = append(leave, departure{from.Add(took.TimeLimit), node, took.Room()})
		}
	}
	for _, other := range c.jobs {
		r := other.current()
		if r == nil {
			continue
		}
		n := slices.Index(c.nodes, r.node)
		if other == j {
			free[n] = free[n].Plus(r.took.Room())
			continue
		}
		takes(r.started, n, r.took)
	}
	if !slices.Contains(queue, j) {
		queue = append(queue, j)
	}
	for {
		next, on := first(now, queue, free, j)
		if on >= 0 && queue[next] == j {
			d := now.Sub(c.now)
			return &d
		}
		if on >= 0 {
			want := queue[next].resources(queue[next].view.Change)
			free[on] = free[on].Minus(want.Room())
			takes(now, on, want)
			queue = slices.Delete(queue, next, next+1)
			continue
		}
		var changes []time.Time // when something changes next
		for _, d := range leave {
			changes = append(changes, d.at)
		}
		for _, q := range queue {
			if q != j && q.view.NotBefore.After(now) {
				changes = append(changes, q.view.NotBefore)
			}
		}
		if len(changes) == 0 {
			return nil
		}
		now = slices.MinFunc(changes, time.Time.Compare)
		leave = slices.DeleteFunc(leave, func(d departure) bool {
			if d.at.After(now) {
				return false
			}
			free[d.node] = free[d.node].Plus(d.room)
			return true
		})
	}
}
