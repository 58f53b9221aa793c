package sim

import (
	"context"
	"slices"
	"time"

	"pitchpipe/driver"
)

// Outlook implements driver.Driver. A job that is restarted gives up its room and
// queues again at the end, so that its wait is not zero where others wait.
func (c *Cluster) Outlook(ctx context.Context, id driver.JobID) (driver.Outlook, error) {
	var out driver.Outlook
	err := c.do(ctx, OpOutlook, id, func() error {
		j, err := c.find(id)
		if err != nil || j.view.State.Ended() {
			return err
		}
		if at := j.view.Submitted.Add(j.act.ClosedAt); j.act.ClosedAt > 0 && at.After(c.now) {
			out.Closed, out.ClosedBy = at, j.act.ClosedBy
		}
		out.Wait = c.wait(j)
		return nil
	})
	if err != nil {
		return driver.Outlook{}, err
	}
	return out, nil
}

// wait is how long the job would wait for room if it left its node now, or keeps
// waiting where it waits already; nil where the time limits do not tell.
func (c *Cluster) wait(j *job) *time.Duration {
	if d := j.act.QueueWait; d > 0 && j.view.Attempt > 0 {
		if j.view.State == driver.Pending {
			d = max(0, j.notBefore.Sub(c.now))
		}
		return &d
	}
	f := forecast{now: c.now, target: j, queue: slices.Clone(c.queue)}
	for _, n := range c.nodes {
		f.free = append(f.free, driver.Resources{Cores: n.spec.Cores - n.cores, MemoryBytes: n.spec.MemoryBytes - n.memory})
	}
	for _, other := range c.jobs {
		r := other.current()
		if r == nil {
			continue
		}
		d := departure{node: slices.Index(c.nodes, r.node), took: r.took}
		switch limit := r.took.TimeLimit; {
		case other == j:
			f.give(d)
		case limit > 0:
			d.at = r.started.Add(limit)
			f.leave = append(f.leave, d)
		}
	}
	if !slices.Contains(f.queue, j) {
		f.queue = append(f.queue, j)
	}
	for {
		if f.start() {
			d := f.now.Sub(c.now)
			return &d
		}
		if !f.next() {
			return nil
		}
	}
}

// forecast plays the queue through by what the jobs declared.
type forecast struct {
	now    time.Time
	free   []driver.Resources // by node
	leave  []departure
	queue  []*job
	target *job
}

// departure is room that becomes free at a time that is known.
type departure struct {
	at   time.Time
	node int
	took driver.Resources
}

// start lets start what may, as Cluster.next does, and reports whether the target
// is among it.
func (f *forecast) start() bool {
	for i := 0; i < len(f.queue); {
		j := f.queue[i]
		if f.held(j) {
			i++
			continue
		}
		want := j.resources(j.view.Change)
		n := slices.IndexFunc(f.free, func(room driver.Resources) bool {
			return want.Cores <= room.Cores && want.MemoryBytes <= room.MemoryBytes
		})
		switch {
		case n < 0:
			return false
		case j == f.target:
			return true
		}
		f.free[n].Cores -= want.Cores
		f.free[n].MemoryBytes -= want.MemoryBytes
		if want.TimeLimit > 0 {
			f.leave = append(f.leave, departure{at: f.now.Add(want.TimeLimit), node: n, took: want})
		}
		f.queue = slices.Delete(f.queue, i, i+1)
	}
	return false
}

// held reports whether a job of the queue may not start yet. A change of the target
// would end its hold.
func (f *forecast) held(j *job) bool { return j != f.target && j.notBefore.After(f.now) }

// next goes on to the next instant at which something changes, or tells that there
// is none.
func (f *forecast) next() bool {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, d := range f.leave {
		sooner(d.at)
	}
	for _, j := range f.queue {
		if f.held(j) {
			sooner(j.notBefore)
		}
	}
	if at.IsZero() {
		return false
	}
	f.now = at
	f.leave = slices.DeleteFunc(f.leave, func(d departure) bool {
		if d.at.After(at) {
			return false
		}
		f.give(d)
		return true
	})
	return true
}

func (f *forecast) give(d departure) {
	f.free[d.node].Cores += d.took.Cores
	f.free[d.node].MemoryBytes += d.took.MemoryBytes
}
