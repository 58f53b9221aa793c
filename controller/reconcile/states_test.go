package reconcile_test

import (
	"cmp"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"pitchpipe/controller/reconcile"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheTransitionsOfThePageAreSound(t *testing.T) {
	t.Parallel()
	arrows := reconcile.Arrows()
	sorted := slices.SortedFunc(slices.Values(arrows), func(a, b reconcile.Arrow) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.By, b.By))
	})
	if n := len(slices.Compact(sorted)); n != len(arrows) {
		t.Errorf("%d arrows, %d different ones", len(arrows), n)
	}
	reached := map[reconcile.Phase]bool{reconcile.Seen: true}
	for range arrows {
		for _, a := range arrows {
			if reached[a.From] {
				reached[a.To] = true
			}
		}
	}
	over := func(from, to reconcile.Phase, by reconcile.Trigger) bool {
		return slices.Contains(arrows, reconcile.Arrow{From: from, To: to, By: by})
	}
	for _, p := range reconcile.Phases() {
		if !reached[p] {
			t.Errorf("no way leads to %s", p)
		}
		if p.Over() {
			continue
		}
		if !over(p, reconcile.Ended, reconcile.JobEnded) {
			t.Errorf("a job cannot end while it is %s", p)
		}
		if p != reconcile.Seen && !over(p, reconcile.Seen, reconcile.OwnerChanged) {
			t.Errorf("an owner cannot change a job that is %s", p)
		}
	}
	for _, a := range arrows {
		if !slices.Contains(reconcile.Phases(), a.From) || !slices.Contains(reconcile.Phases(), a.To) {
			t.Errorf("%v: there is no such phase", a)
		}
		if a.From.Over() {
			t.Errorf("%s is final, and %q leads from it to %s", a.From, a.By, a.To)
		}
		if a.To == reconcile.Changing && a.From == reconcile.Changing {
			t.Errorf("%q leads from one intent under way, %s, to another, %s", a.By, a.From, a.To)
		}
	}
}
