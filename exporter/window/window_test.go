package window_test

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/window"
)

func key(id string, attempt int) attrib.Key {
	return attrib.Key{Manager: attrib.Local, ID: id, Attempt: attempt}
}

func at(second int) time.Time { return time.Unix(int64(second), 0) }

func all(api.Job) bool { return true }

func begin(t testing.TB, s *window.Store, id string, attempt, second int) {
	t.Helper()
	job := api.Job{Manager: attrib.Local, ID: id, Attempt: attempt, Started: at(second)}
	if err := s.Begin(window.Attempt{Job: job, Schema: api.SchemaSoftware, Source: "modelled"}); err != nil {
		t.Fatal(err)
	}
}

func TestTheRingForgetsTheOldestAndSaysHowMany(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{Samples: 3})
	begin(t, s, "7", 1, 0)
	for i := 1; i <= 5; i++ {
		s.Append(key("7", 1), at(i), map[string]float64{api.ColCPUSeconds: float64(i), api.ColRSS: math.NaN()}, nil)
	}
	w, ok := s.Window("7", 1, 0, 0, all)
	if !ok || w.Dropped != 2 || w.Schema != api.SchemaSoftware || w.Source != "modelled" {
		t.Errorf("ok %v, window %+v", ok, w)
	}
	var want []api.Sample
	for i := 3; i <= 5; i++ {
		want = append(want, api.Sample{Seq: uint64(i), Time: at(i), Values: map[string]float64{api.ColCPUSeconds: float64(i)}})
	}
	if diff := cmp.Diff(want, w.Samples); diff != "" {
		t.Errorf("samples (-want +got):\n%s", diff)
	}
	w, _ = s.Window("7", 0, 4, 0, all)
	if diff := cmp.Diff(want[2:], w.Samples); diff != "" {
		t.Errorf("samples after 4 (-want +got):\n%s", diff)
	}
}

func TestCountersNeverGoDownAndGaugesMay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		s := window.New(window.Config{})
		begin(t, s, "7", 1, 0)
		var gauge []float64
		for i := range rapid.IntRange(1, 20).Draw(rt, "n") {
			v := rapid.Float64Range(0, 100).Draw(rt, "v")
			gauge = append(gauge, v)
			s.Append(key("7", 1), at(rapid.IntRange(0, 5).Draw(rt, "t")), map[string]float64{api.ColCPUSeconds: v, api.ColRSS: v}, nil)
			_ = i
		}
		w, _ := s.Window("7", 1, 0, 0, all)
		for i, sample := range w.Samples {
			if sample.Values[api.ColRSS] != gauge[i] {
				rt.Fatalf("gauge %v, want %v", sample.Values[api.ColRSS], gauge[i])
			}
			if i > 0 && (sample.Values[api.ColCPUSeconds] < w.Samples[i-1].Values[api.ColCPUSeconds] || sample.Time.Before(w.Samples[i-1].Time)) {
				rt.Fatalf("sample %d went back: %+v after %+v", i, sample, w.Samples[i-1])
			}
		}
	})
}

func TestAMarkWithoutASnapshotIsStillAMark(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{})
	begin(t, s, "7", 1, 0)
	s.Append(key("7", 1), at(1), nil, &api.Report{Epoch: 4})
	w, _ := s.Window("7", 1, 0, 0, all)
	if len(w.Samples) != 1 || w.Samples[0].Mark.Epoch != 4 || len(w.Samples[0].Values) != 0 {
		t.Errorf("samples %+v", w.Samples)
	}
}

func TestAnEndedAttemptKeepsItsValuesForAWhile(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{Keep: 10 * time.Minute})
	begin(t, s, "7", 1, 0)
	s.End(key("7", 1), at(5), map[string]float64{api.ColCPUSeconds: 9})
	s.Append(key("7", 1), at(6), map[string]float64{api.ColCPUSeconds: 10}, nil)
	s.Prune(at(5 + 600))
	w, ok := s.Window("7", 1, 0, 0, all)
	if !ok || !w.Job.Ended || len(w.Samples) != 1 || !w.Samples[0].Ended || w.Samples[0].Values[api.ColCPUSeconds] != 9 {
		t.Errorf("ok %v, window %+v", ok, w)
	}
	if n := s.NextAttempt(attrib.Local, "7"); n != 2 {
		t.Errorf("next attempt %d, want 2", n)
	}
	s.Prune(at(5 + 601))
	if _, ok := s.Window("7", 1, 0, 0, all); ok {
		t.Error("still there after its time")
	}
}

func TestWhatIsNotVisibleIsNotThere(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{})
	begin(t, s, "7", 1, 0)
	none := func(api.Job) bool { return false }
	if _, ok := s.Window("7", 1, 0, 0, none); ok || len(s.Jobs(none)) != 0 {
		t.Error("seen")
	}
	if len(s.Jobs(all)) != 1 {
		t.Error("not seen by who may")
	}
}

func TestAttemptZeroIsTheNewest(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{})
	begin(t, s, "7", 2, 5)
	begin(t, s, "7", 1, 0)
	if w, _ := s.Window("7", 0, 0, 0, all); w.Job.Attempt != 2 {
		t.Errorf("attempt %d, want 2", w.Job.Attempt)
	}
}

func TestAFullStoreForgetsEndedAttemptsAndNoRunningOne(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{Jobs: 3})
	for i := range 3 {
		begin(t, s, fmt.Sprint(i), 1, i)
	}
	if err := s.Begin(window.Attempt{Job: api.Job{ID: "9", Attempt: 1}, Schema: "", Source: ""}); !errors.Is(err, window.ErrFull) {
		t.Errorf("got %v, want %v", err, window.ErrFull)
	}
	s.End(key("2", 1), at(1), nil)
	s.End(key("1", 1), at(2), nil)
	begin(t, s, "9", 1, 9)
	if _, ok := s.Window("2", 1, 0, 0, all); ok {
		t.Error("the attempt that ended first is still there")
	}
	if _, ok := s.Window("1", 1, 0, 0, all); !ok {
		t.Error("the attempt that ended last is gone")
	}
}

func TestSavesAreCountedWhileAnAttemptRuns(t *testing.T) {
	t.Parallel()
	s := window.New(window.Config{})
	begin(t, s, "7", 1, 0)
	saved := func(attempt, second int) bool {
		return s.Append(key("7", attempt), at(9), nil, &api.Report{Saved: true, Time: at(second)})
	}
	if !saved(1, 9) || !s.Renumber(key("7", 1), 2) || !saved(2, 5) {
		t.Error("not taken")
	}
	if saved(1, 9) {
		t.Error("an attempt that is not there has saved")
	}
	s.End(key("7", 2), at(1), nil)
	w, ok := s.Window("7", 2, 0, 0, all)
	if !ok || w.Job.Saves != 2 || !w.Job.Saved.Equal(at(9)) || w.Now.IsZero() {
		t.Errorf("%+v at %v, want 2 saves, the last at %v", w.Job, w.Now, at(9))
	}
}

// Also where the ring turned.
func TestSamplesAreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	gauges := []string{api.ColRSS, api.ColCache, api.ColThreads}
	rapid.Check(t, func(rt *rapid.T) {
		size := rapid.IntRange(1, 6).Draw(rt, "ring")
		s := window.New(window.Config{Samples: size})
		key := attrib.Key{Manager: attrib.Local, ID: "1", Attempt: 1}
		if err := s.Begin(window.Attempt{Job: api.Job{Manager: key.Manager, ID: "1", Attempt: 1}, Schema: "s", Source: "rapl"}); err != nil {
			rt.Fatal(err)
		}
		rows := rapid.SliceOfN(rapid.MapOf(rapid.SampledFrom(gauges), rapid.SampledFrom([]float64{0, 1, 2.5})), 1, 20).Draw(rt, "rows")
		for i, row := range rows {
			s.Append(key, time.Unix(int64(i), 0), row, nil)
		}
		w, _ := s.Window("1", 0, 0, 0, func(api.Job) bool { return true })
		want := rows[max(len(rows)-size, 0):]
		if len(w.Samples) != len(want) {
			rt.Fatalf("%d samples, want %d", len(w.Samples), len(want))
		}
		for i, sample := range w.Samples {
			if diff := cmp.Diff(want[i], sample.Values); diff != "" {
				rt.Errorf("sample %d of %d (-want +got):\n%s", i, len(w.Samples), diff)
			}
		}
	})
}
