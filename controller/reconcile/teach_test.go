package reconcile_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/forecast"
	"pitchpipe/controller/tuning"
	"pitchpipe/test/sim"
)

// What forecasts were worth reaches the forecast of the curve, which is made of a decision
// that is kept, and comes from jobs that ended well.
func TestWhatForecastsWereWorthReachesTheNextJob(t *testing.T) {
	t.Parallel()
	known := []tuning.CurveLesson{{Seen: 2, Total: 12, Truth: 0.5}}
	worth := []tuning.CurveLesson{{Seen: 4, Total: 12, Truth: 0.25}}
	for _, tc := range []struct {
		name string
		err  error // of reading what is known
		work string
		told []tuning.CurveLesson
		want []tuning.CurveLesson // of the lesson
	}{
		{"of a job that ended well", nil, usual, known, worth},
		{"not of one that failed", nil, usual + " exit=3", known, nil},
		{"what cannot be read is missing, and no more", errInjected, usual, nil, worth},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			inWorld(t, sim.Config{}, func(t *testing.T, w *world) {
				curves := 0
				w.curves = func(_ context.Context, kind tuning.JobKind) ([]tuning.CurveLesson, error) {
					if kind.Name != "train" {
						t.Errorf("asked about %s", kind)
					}
					if tc.err != nil {
						return nil, tc.err
					}
					return known, nil
				}
				w.foresee = func(q forecast.Work) tuning.Forecast {
					if !q.Curve && q.Lessons != nil {
						t.Error("lessons without a curve")
					}
					if q.Curve {
						curves++
						if diff := cmp.Diff(tc.told, q.Lessons); diff != "" {
							t.Errorf("the forecast (-want +got):\n%s", diff)
						}
					}
					return tuning.Forecast{Reason: tuning.ReasonNoTotal}
				}
				w.teach = func(q forecast.Work) []tuning.CurveLesson {
					if diff := cmp.Diff(tc.told, q.Lessons); diff != "" || len(q.Epochs) != 12 || q.Total != 12 {
						t.Errorf("%d epochs of %d, told (-want +got):\n%s", len(q.Epochs), q.Total, diff)
					}
					return worth
				}
				w.restart()
				w.decide = func(tuning.State) tuning.Decision { return hold(tuning.ReasonTooShort) }
				w.end(t, w.mustSubmit(t, "train", tc.work))
				if len(w.lessons) != 1 || curves == 0 {
					t.Fatalf("%d lessons, %d forecasts of curves", len(w.lessons), curves)
				}
				if diff := cmp.Diff(tc.want, w.lessons[0].Curve); diff != "" {
					t.Errorf("learned (-want +got):\n%s", diff)
				}
			})
		})
	}
}
