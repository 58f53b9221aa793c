package searcher_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"pitchpipe/controller/searcher"
	"pitchpipe/controller/searcher/searchertest"
	"pitchpipe/controller/tuning"
)

// draw is a search for the largest x, or the smallest.
func draw(t *rapid.T) searcher.Plan {
	p := tuning.DefaultPolicy()
	search := tuning.DefaultSearch()
	search.Method = rapid.SampledFrom(tuning.SearchMethods()).Draw(t, "method")
	search.Trials, search.Parallel = rapid.IntRange(1, 12).Draw(t, "trials"), rapid.IntRange(1, 4).Draw(t, "parallel")
	search.Epochs, search.MinEpochs, search.Eta = rapid.IntRange(1, 16).Draw(t, "epochs"), 1, rapid.IntRange(2, 4).Draw(t, "eta")
	search.Seed = rapid.Uint64().Draw(t, "seed")
	search.Failures = rapid.IntRange(0, 2).Draw(t, "failures")
	p.Search = &search
	p.Knobs = []tuning.Knob{{Name: "x", Env: "X", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear}}
	p.Quality = &tuning.Quality{Direction: rapid.SampledFrom([]string{"max", "min"}).Draw(t, "direction")}
	if rapid.Bool().Draw(t, "a checkpoint") {
		p.Checkpoint = &tuning.Checkpoint{Signal: "SIGUSR1"}
	}
	plan, err := searcher.PlanOf(p)
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// happens is an event that may come next; false: none can.
func happens(t *rapid.T, s *searcher.Searcher) (searcher.Event, bool) {
	var busy []int
	for _, tr := range s.Trials {
		if tr.Busy {
			busy = append(busy, tr.Number)
		}
	}
	if len(busy) == 0 {
		return searcher.Event{}, false
	}
	kinds := []searcher.EventKind{searcher.Reported, searcher.Reported, searcher.Reported, searcher.Broke, searcher.Ended, searcher.Ended, searcher.Waited}
	if rapid.IntRange(0, 30).Draw(t, "luck") == 0 {
		kinds = []searcher.EventKind{searcher.Closed}
	}
	e := searcher.Event{Kind: rapid.SampledFrom(kinds).Draw(t, "event")}
	switch e.Kind {
	case searcher.Closed, searcher.Waited:
		e.Reason = "the owner's wish"
		return e, true
	default:
	}
	e.Trial = rapid.SampledFrom(busy).Draw(t, "trial")
	last := s.Trials[e.Trial-1].Last()
	e.Report = searcher.Report{Epoch: last.Epoch + rapid.IntRange(0, 2).Draw(t, "epochs"), Value: rapid.Float64Range(-1, 1).Draw(t, "value"), Seconds: last.Seconds + 1}
	if e.Kind == searcher.Ended {
		e.End = rapid.SampledFrom([]searcher.End{searcher.Succeeded, searcher.Broken, searcher.NoMemory, searcher.NoTime, searcher.Lost, searcher.Cancelled}).Draw(t, "end")
		e.Reason = "the scheduler's word"
	}
	return e, true
}

// TestEventsReplayToTheSameDecisions also takes the searcher up again from its snapshot, as a controller that was
// killed does: it decides as one that never was.
func TestEventsReplayToTheSameDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan := draw(t)
		s := searcher.New(plan, searcher.Snapshot{})
		did, err := s.Handle(searcher.Event{Kind: searcher.Opened, Cost: rapid.Float64Range(0, 10).Draw(t, "cost")})
		for range rapid.IntRange(0, 60).Draw(t, "events") {
			if err != nil {
				t.Fatal(err)
			}
			e, ok := happens(t, s)
			var more []searcher.Action
			switch {
			case ok:
				more, err = s.Handle(e)
			case s.Over && rapid.Bool().Draw(t, "more trials"):
				search := s.Search
				search.Trials++
				if more, err = s.Reopen(search, 0); errors.Is(err, searcher.ErrSpent) {
					err = nil
				}
			}
			did = append(did, more...)
			if rapid.IntRange(0, 3).Draw(t, "killed") == 0 {
				text, err := json.Marshal(s.Snapshot)
				if err != nil {
					t.Fatal(err)
				}
				var stored searcher.Snapshot
				if err := json.Unmarshal(text, &stored); err != nil {
					t.Fatal(err)
				}
				s = searcher.New(s.Plan, stored)
			}
		}
		again, err := searchertest.Replay(plan, s.Snapshot)
		if err != nil || !slices.Equal(did, again) {
			t.Errorf("%v: decided %v, and in the replay %v", err, did, again)
		}
	})
}

func TestAReplayFindsWhatIsMissing(t *testing.T) {
	played := func() (searcher.Plan, searcher.Snapshot) {
		p := tuning.DefaultPolicy()
		search := tuning.DefaultSearch()
		search.Trials, search.Parallel, search.Epochs = 4, 2, 4
		p.Search, p.Quality = &search, &tuning.Quality{Direction: "max"}
		p.Knobs = []tuning.Knob{{Name: "x", Env: "X", Min: tuning.Number(0), Max: tuning.Number(1), Scale: tuning.Linear}}
		plan, err := searcher.PlanOf(p)
		s := searcher.New(plan, searcher.Snapshot{})
		for i, e := range []searcher.Event{
			{Kind: searcher.Opened},
			{Kind: searcher.Reported, Trial: 1, Report: searcher.Report{Epoch: 1, Value: 0.5}},
			{Kind: searcher.Reported, Trial: 2, Report: searcher.Report{Epoch: 1, Value: 0.6}},
			{Kind: searcher.Ended, Trial: 2, End: searcher.Broken, Reason: "its disk was full"},
		} {
			_, err2 := s.Handle(e)
			if err := errors.Join(err, err2); err != nil {
				t.Fatalf("event %d: %v", i+1, err)
			}
		}
		return plan, s.Snapshot
	}
	for _, tt := range []struct {
		name   string
		spoil  func(s *searcher.Snapshot)
		replay error
	}{
		{"nothing", func(*searcher.Snapshot) {}, nil},
		{"a report", func(s *searcher.Snapshot) { s.Trials[0].Reports = nil }, searchertest.ErrReplay},
		{"the end of a job", func(s *searcher.Snapshot) { s.Trials[1].Log = nil }, searchertest.ErrReplay},
		{"a trial", func(s *searcher.Snapshot) { s.Trials = s.Trials[:2] }, searchertest.ErrReplay},
		{"a report that counts twice", func(s *searcher.Snapshot) { s.Trials[0].Reports = append(s.Trials[0].Reports, s.Trials[0].Reports[0]) }, searchertest.ErrReplay},
		{"what became of a trial", func(s *searcher.Snapshot) { s.Trials[1].State = searcher.Done }, searchertest.ErrReplay},
		{"why the search ends", func(s *searcher.Snapshot) { s.Closing = "a whim" }, searchertest.ErrReplay},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan, s := played()
			tt.spoil(&s)
			if _, err := searchertest.Replay(plan, s); !errors.Is(err, tt.replay) {
				t.Errorf("%v, want %v", err, tt.replay)
			}
		})
	}
}
