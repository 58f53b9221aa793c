package daemon

import (
	"testing"

	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

func TestARecalledJobIsShownAsOneAndARightSizedToo(t *testing.T) {
	t.Parallel()
	own := tuning.Settings{tuning.Cores: tuning.Number(1), tuning.Memory: tuning.Number(4 << 30)}
	faster := own.With(tuning.Cores, tuning.Number(4))
	smaller := own.With(tuning.Memory, tuning.Number(1<<30))
	for _, c := range []struct {
		name          string
		rec           reconcile.Record
		recalled, fit bool
	}{
		{"untouched", reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1, Settings: own, Action: tuning.Hold}}}}, false, false},
		{"changed before it started", reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1, Settings: faster, Action: tuning.Move}}}}, true, false},
		{"its memory alone", reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{Runs: []reconcile.Run{{Attempt: 1, Settings: smaller, Action: tuning.Move}}}}, true, true},
		{"changed, not yet started", reconcile.Record{Request: reconcile.Request{Own: own}, Course: reconcile.Course{Queued: &reconcile.Run{Settings: smaller, Action: tuning.Move}}}, true, true},
		{"being changed", reconcile.Record{Request: reconcile.Request{Own: own}, Phase: reconcile.Changing, Tuning: reconcile.Tuning{Move: &reconcile.Intent{Decision: tuning.Decision{Settings: faster}}}}, true, false},
		{"moved while it ran", reconcile.Record{
			Request: reconcile.Request{Own: own},
			Course: reconcile.Course{Runs: []reconcile.Run{
				{Attempt: 1, Settings: own, Action: tuning.Hold},
				{Attempt: 2, Settings: faster, Action: tuning.Move},
			}, Queued: &reconcile.Run{Attempt: 3, Settings: smaller}},
		}, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.rec.Own = own
			if a, b := recalled(&c.rec); a != c.recalled || b != c.fit {
				t.Errorf("recalled %t, right-sized %t; want %t and %t", a, b, c.recalled, c.fit)
			}
		})
	}
}
