package reconcile_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/test/sim"
)

func TestAListenerIsAskedForOnceAnAttemptAndLookedForAgain(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		seconds int
		answer  func(call int) error
		want    []int // the attempts of the calls
	}{
		{"a short job", 2, func(int) error { return nil }, []int{1, 2}},
		{"one that could not be started is tried again, though not at once", 10, func(call int) error {
			if call == 0 {
				return driver.ErrTransient
			}
			return nil
		}, []int{1, 1, 2, 2}},
		{"one that is not to be had is not asked for again soon", 2, func(int) error { return driver.ErrUnsupported }, []int{1, 2}},
		{"one that the scheduler denies is on record", 2, func(int) error { return driver.ErrDenied }, []int{1, 2, 2}},
		{"one that it denies only at first is not", 60, func(call int) error {
			if call == 0 {
				return driver.ErrDenied
			}
			return nil
		}, []int{1, 1, 2, 2, 2}},
		{"in a long job it is looked for soon, then now and then", 60, func(int) error { return nil }, []int{1, 1, 2, 2, 2}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				w.decide = func(s tuning.State) tuning.Decision {
					switch {
					case s.Measured != tuning.ReasonNone:
						return hold(tuning.ReasonProfiling)
					case s.Restarts == 0:
						return tuning.Decision{Action: tuning.Move, Reason: tuning.ReasonClassKnown, Settings: cores(1)}
					}
					return hold(tuning.ReasonAlreadyBest)
				}
				var calls []int
				w.listen = func(_ driver.JobID, attempt int) error {
					calls = append(calls, attempt)
					return tc.answer(len(calls) - 1)
				}
				rec, _ := w.end(t, w.mustSubmit(t, "train", fmt.Sprintf("epochs=10 seconds=%d checkpoint=500ms", tc.seconds)))
				if denied := errors.Is(tc.answer(len(calls)-1), driver.ErrDenied); denied != (rec.Unheard != "") {
					t.Errorf("on record: %q, denied at last: %t", rec.Unheard, denied)
				}
				if !slices.Equal(calls, tc.want) {
					t.Errorf("asked for in attempts %v, want %v", calls, tc.want)
				}
			})
		})
	}
}
