package reconcile_test

import (
	"slices"
	"testing"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
	"pitchpipe/test/sim"
)

// on makes each attempt run on a machine of such a kind.
func on(kinds ...string) func(*tuning.Epoch) {
	return func(e *tuning.Epoch) { e.Machine = kinds[min(e.Attempt, len(kinds))-1] }
}

func TestWhatRanOnAnotherKindOfMachineIsNotComparedWith(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		kinds    []string
		attempts int
		held     bool // because its own settings were measured on another kind
	}{
		{"on machines of one kind it is probed and moved", []string{"a"}, 3, false},
		{"on machines of an unknown kind, too", []string{""}, 3, false},
		{"probed on another kind than its own settings it is held", []string{"a", "b"}, 2, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide, w.epoch = probeThenMove, on(tc.kinds...)
				compared := 0
				w.compare = func(c verify.Input) tuning.Outcome {
					compared++
					for _, e := range slices.Concat(c.Before, c.After) {
						if e.Machine != tc.kinds[len(tc.kinds)-1] {
							t.Errorf("epoch %d of a machine of kind %q is compared", e.Number, e.Machine)
						}
					}
					return tuning.Outcome{Verdict: tuning.Inconclusive, Reason: tuning.ReasonInconclusive}
				}
				rec, job := w.end(t, w.mustSubmit(t, "train", usual))
				if len(job.Attempts) != tc.attempts {
					t.Errorf("%d attempts, want %d", len(job.Attempts), tc.attempts)
				}
				said := slices.ContainsFunc(rec.History, func(e reconcile.Entry) bool { return e.Reason == tuning.ReasonOtherMachine })
				if said != tc.held {
					t.Errorf("held for the kind of its machine: %v, want %v", said, tc.held)
				}
				if tc.held && (compared > 0 || rec.Outcome == nil || rec.Outcome.Verdict != tuning.Inconclusive || rec.Outcome.Reason != tuning.ReasonOtherMachine) {
					t.Errorf("%d comparisons, outcome %+v; want none, and that it is inconclusive because of that", compared, rec.Outcome)
				}
				if len(w.lessons) != 1 {
					t.Fatalf("%d lessons, want 1", len(w.lessons))
				}
				if reference := slices.ContainsFunc(w.lessons[0].Trials, func(x tuning.Trial) bool { return x.Reference }); reference == tc.held {
					t.Errorf("the lesson's trials are %+v", w.lessons[0].Trials)
				}
			})
		})
	}
}
