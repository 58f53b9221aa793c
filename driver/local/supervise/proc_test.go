package supervise

import (
	"slices"
	"testing"

	"pitchpipe/driver/local/cgroup"
)

func TestDescendantsAreFoundAtAnyDepth(t *testing.T) {
	t.Parallel()
	table := map[int]cgroup.Process{}
	for pid, parent := range map[int]int{1: 0, 2: 1, 3: 2, 4: 3, 5: 1, 6: 5} {
		table[pid] = cgroup.Process{PID: pid, Parent: parent}
	}
	got := descendants(table, 2)
	slices.Sort(got)
	if !slices.Equal(got, []int{3, 4}) {
		t.Errorf("descendants of 2: %v, want 3 and 4", got)
	}
}
