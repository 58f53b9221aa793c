package driver

import (
	"fmt"
	"slices"
)

// Room is what a node has free, or what a job takes of it.
type Room struct {
	Cores  int
	Memory int64 // bytes; of a job 0 = no limit, which takes none
}

// Holds reports whether it fits. What is free may be less than nothing, which does not
// matter to a job that takes none of it.
func (r Room) Holds(want Room) bool {
	return want.Cores <= r.Cores && (want.Memory == 0 || want.Memory <= r.Memory)
}

// Minus returns what o leaves of it.
func (r Room) Minus(o Room) Room { return Room{r.Cores - o.Cores, r.Memory - o.Memory} }

// Plus returns the sum of both.
func (r Room) Plus(o Room) Room { return Room{r.Cores + o.Cores, r.Memory + o.Memory} }

// Beyond reports whether it is more than the other, of cores or of memory.
func (r Room) Beyond(o Room) bool { return r.Cores > o.Cores || r.Memory > o.Memory }

// Grow is ErrNoRoom where a job would have to wait for more than it has: no node has free
// now, the job's own room counted, what it is to have.
func Grow(has, want Room, nodes ...Room) error {
	if !want.Beyond(has) || slices.ContainsFunc(nodes, func(free Room) bool { return free.Holds(want) }) {
		return nil
	}
	return fmt.Errorf("%w now for %d cores and %d bytes of memory, where it has %d and %d", ErrNoRoom, want.Cores, want.Memory, has.Cores, has.Memory)
}
