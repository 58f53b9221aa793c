package sim

import (
	"sort"
	"time"

	"pitchpipe/driver"
)

// node is a machine: what is free on it, and the course of its load.
type node struct {
	spec   NodeSpec
	cores  int   // allocated
	memory int64 // allocated

	busy      float64 // cores that work now, in all jobs
	contended int     // jobs that others disturb now
	course    []load  // by time
}

// load is a node's load from an instant on.
type load struct {
	at          time.Time
	busy, steal float64 // CPU seconds until then
	busyRate    float64
	stealRate   float64
}

func (n *node) fits(want driver.Resources) bool {
	return n.cores+want.Cores <= n.spec.Cores && n.memory+want.MemoryBytes <= n.spec.MemoryBytes
}

func (n *node) take(want driver.Resources, sign int) {
	n.cores += sign * want.Cores
	n.memory += int64(sign) * want.MemoryBytes
}

// shift notes that from now on the load of one job differs by these amounts.
func (n *node) shift(now time.Time, busy float64, contended int) {
	n.busy += busy
	n.contended += contended
	l := load{at: now, busyRate: max(0, n.busy)}
	l.busy, l.steal = n.loadAt(now)
	if n.contended > 0 {
		l.stealRate = stolen * float64(n.spec.Cores)
	}
	n.course = append(n.course, l)
}

// loadAt is the node's CPU time and its stolen time until then, in CPU seconds.
func (n *node) loadAt(t time.Time) (busy, steal float64) {
	i := sort.Search(len(n.course), func(i int) bool { return n.course[i].at.After(t) }) - 1
	if i < 0 {
		return 0, 0
	}
	l := n.course[i]
	d := t.Sub(l.at).Seconds()
	return l.busy + d*l.busyRate, l.steal + d*l.stealRate
}
