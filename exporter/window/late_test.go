package window_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/window"
)

func TestWhatComesLateStandsAtTheEndOfItsAttempt(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{Keep: time.Hour})
	begin(t, s, "7", 1, 0)
	s.Append(key("7", 1), at(4), map[string]float64{api.ColCPUSeconds: 8, api.ColJoules: 5}, nil) // which are unknown at its end
	s.End(key("7", 1), at(5), map[string]float64{api.ColCPUSeconds: 9})
	begin(t, s, "7", 2, 6)
	s.End(key("7", 2), at(8), nil)
	begin(t, s, "8", 1, 0)
	ended := func(j api.Job) bool { return j.Ended }
	for _, tc := range []struct {
		name    string
		attempt int
		want    int // attempt; 0 = none
	}{
		{"local/7", 1, 1}, {"7", 1, 1}, {"local/7", 0, 2}, {"local/7", 3, 0}, {"nomad/7", 1, 0}, {"local/8", 1, 0}, {"9", 0, 0},
	} {
		if got, ok := s.Find(tc.name, tc.attempt, ended); ok != (tc.want > 0) || got.Attempt != tc.want {
			t.Errorf("%+v: %v, %v", tc, got, ok)
		}
	}
	for _, r := range []api.Report{{Epoch: 3}, {Saved: true}, {Epoch: 4}} {
		if !s.Append(key("7", 1), at(9), nil, &r) || !s.Append(key("7", 2), at(9), nil, &r) {
			t.Errorf("%+v was not taken", r)
		}
	}
	for attempt, want := range map[int][]api.Sample{
		1: {
			{Seq: 1, Time: at(4), Values: map[string]float64{api.ColCPUSeconds: 8, api.ColJoules: 5}},
			{Seq: 2, Time: at(5), Values: map[string]float64{api.ColCPUSeconds: 9}, Ended: true},
			{Seq: 3, Time: at(5), Values: map[string]float64{api.ColCPUSeconds: 9}, Mark: &api.Report{Epoch: 3}, Ended: true},
			{Seq: 4, Time: at(5), Values: map[string]float64{api.ColCPUSeconds: 9}, Mark: &api.Report{Epoch: 4}, Ended: true},
		},
		2: { // that was never read
			{Seq: 1, Time: at(8), Values: map[string]float64{}, Ended: true},
			{Seq: 2, Time: at(8), Values: map[string]float64{}, Mark: &api.Report{Epoch: 3}, Ended: true},
			{Seq: 3, Time: at(8), Values: map[string]float64{}, Mark: &api.Report{Epoch: 4}, Ended: true},
		},
	} {
		w, _ := s.Window("7", attempt, 0, 0, all)
		if diff := cmp.Diff(want, w.Samples); diff != "" || w.Job.Saves != 1 || !w.Job.Ended {
			t.Errorf("attempt %d: %+v, samples (-want +got):\n%s", attempt, w.Job, diff)
		}
	}
}
