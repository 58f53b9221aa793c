package move

import (
	"sync"
	"testing"
)

func TestALockIsHeldByOneAtATimeAndLeavesNothing(t *testing.T) {
	t.Parallel()
	var l Locks
	var all sync.WaitGroup
	counts := [3]int{} // what the race detector watches
	for i := range 99 {
		all.Go(func() {
			defer l.Hold(string(rune('a' + i%3)))()
			counts[i%3]++
		})
	}
	all.Wait()
	if counts != [3]int{33, 33, 33} || len(l.held) != 0 {
		t.Errorf("counted %v, and %d locks are left", counts, len(l.held))
	}
}
