package sim

import (
	"container/heap"
	"time"
)

// event is something that happens at an instant that is known beforehand.
type event struct {
	at   time.Time
	seq  uint64 // events of one instant happen in the order of their making
	fire func()
}

// agenda is a heap of events, the next one first.
type agenda []event

func (a agenda) Len() int { return len(a) }

func (a agenda) Less(i, j int) bool {
	if !a[i].at.Equal(a[j].at) {
		return a[i].at.Before(a[j].at)
	}
	return a[i].seq < a[j].seq
}

func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push is for container/heap.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop is for container/heap.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = event{}
	*a = (*a)[:last]
	return e
}

// at puts f on the agenda. The caller holds the lock.
func (c *Cluster) at(when time.Time, f func()) {
	c.seq++
	heap.Push(&c.agenda, event{at: when, seq: c.seq, fire: f})
}

// after puts f on the agenda, d after the instant that the cluster is at.
func (c *Cluster) after(d time.Duration, f func()) { c.at(c.now.Add(d), f) }

// enter takes the lock and lets everything happen that was due by now, each
// event at its own instant: what a caller sees never depends on when it looks.
func (c *Cluster) enter() {
	c.mu.Lock()
	now := time.Now()
	for !c.closed && len(c.agenda) > 0 && !c.agenda[0].at.After(now) {
		e := heap.Pop(&c.agenda).(event)
		if e.at.After(c.now) {
			c.now = e.at
		}
		e.fire()
	}
	if now.After(c.now) {
		c.now = now
	}
}

// leave sets the timer for the next event and gives the lock back.
func (c *Cluster) leave() {
	defer c.mu.Unlock()
	if c.closed || len(c.agenda) == 0 {
		return
	}
	d := time.Until(c.agenda[0].at)
	if c.timer == nil {
		c.timer = time.AfterFunc(d, c.wake)
		return
	}
	c.timer.Reset(d)
}

// wake is the timer's: it lets what is due happen although nobody asks, so that
// watchers hear of it.
func (c *Cluster) wake() {
	c.enter()
	c.leave()
}
