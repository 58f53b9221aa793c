package durations

import (
	"math"
	"testing"
)

func TestOnlyTheLatestNamesAreKept(t *testing.T) {
	t.Parallel()
	var l Latest[int, int]
	for key := range 5 * window {
		*l.Use(0)++
		*l.Use(key)++
	}
	if first := l.Get(0); first == nil || *first != 5*window+1 {
		t.Errorf("the key that is used most has %v, want the same value after each use", first)
	}
	if kept := len(l.now) + len(l.before); l.Get(4*window+2) == nil || l.Get(window) != nil || kept > 2*window {
		t.Errorf("%d keys are kept, the latest: %v, an old one: %v", kept, l.Get(4*window+2), l.Get(window))
	}
}

func TestRunsOfLongAgoAreForgotten(t *testing.T) {
	t.Parallel()
	var p past
	const day = gone / 90
	for i := range 1000 {
		p.add(day*float64(i), float64(i%7))
	}
	if len(p.ends) > 2*91 || len(p.ends) != len(p.means) {
		t.Errorf("%d runs are kept of one a day, want no more than twice those of 90 days", len(p.ends))
	}
	if now, then := p.before(1000*day), p.before(920*day); now == then || math.IsNaN(then) {
		t.Errorf("the mean is %g, and was %g 80 days ago", now, then)
	}
}
