package story_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

func about(value, low, high float64) *tuning.Estimate {
	return &tuning.Estimate{Value: value, Low: low, High: high}
}

// considered is a job with a forecast and a budget that it may exceed.
func considered() *reconcile.Record {
	class := &tuning.Class{ID: "c2", Reason: tuning.ReasonNearest, NearestID: "c2", Distance: 0.8, Radius: 2, Neighbours: []tuning.Neighbour{
		{ID: "c2", Distance: 0.8, Radius: 2}, {ID: "c7", Distance: 3.1, Radius: 2.5},
	}}
	forecast := &tuning.Forecast{
		Basis: tuning.BasisOwn, Measured: 3, Settings: cores(8), Epochs: about(36, 36, 36),
		Seconds: about(5400, 5100, 5800), Joules: about(1.2e6, 1.1e6, 1.3e6), Spent: about(9e4, 9e4, 9e4), JoulesSource: "rapl",
		Final: about(0.9312, 0.92, 0.94), FinalOf: "quality",
	}
	budgets := []tuning.BudgetOutlook{
		{Of: "energy", Limit: 1e6, Own: about(1.29e6, 1.19e6, 1.39e6), Change: about(9e5, 8e5, 9.5e5), Overruns: true},
		{Of: "time", Limit: 7200, Own: about(5700, 5400, 6100), Change: about(6000, 5600, 6500)},
	}
	prices := &tuning.Prices{Unit: "joules", Restart: 2200, Queue: 4400, Explore: 25000, Margin: 1.5}
	alternatives := func(taken tuning.Action) []tuning.Alternative {
		out := []tuning.Alternative{
			{Settings: cores(8), From: tuning.OriginPresent, Reason: tuning.ReasonLessPromising, Rest: about(1.2e6, 1.1e6, 1.3e6)},
			{Settings: cores(4), From: tuning.OriginClass, Reason: tuning.ReasonClassKnown, Taken: true, Rest: about(8e5, 7e5, 9e5), Saving: about(4e5, 3e5, 5e5)},
			{Settings: cores(2), From: tuning.OriginKind, Reason: tuning.ReasonSlower, Rest: about(7e5, 6e5, 8e5), Saving: about(5e5, 4e5, 6e5)},
			{Settings: cores(1), From: tuning.OriginSearch, Reason: tuning.ReasonLessPromising},
		}
		if taken == tuning.Hold {
			out[0].Taken, out[0].Reason = true, tuning.ReasonOverTime
			out[1].Taken, out[1].Reason = false, tuning.ReasonOverTime
		}
		return out
	}
	move := tuning.Decision{
		Action: tuning.Move, Reason: tuning.ReasonClassKnown, Settings: cores(4),
		Evidence: []tuning.Evidence{
			{Name: "remaining_seconds", Value: 5400},
			{Name: "predicted_saving_joules", Value: 4e5},
			{Name: "restart_cost_joules", Value: 2200},
			{Name: "queue_wait_seconds", Value: 20},
			{Name: "margin", Value: 1.5},
			{Name: "saving_at_least_joules", Value: 3e5},
		},
		Class: class, Forecast: forecast, Prices: prices, Budgets: budgets, Alternatives: alternatives(tuning.Move),
	}
	late := tuning.Decision{
		Action: tuning.Hold, Reason: tuning.ReasonOverTime, Advice: cores(4), Class: class, Forecast: forecast, Prices: prices,
		Evidence: []tuning.Evidence{
			{Name: "budget_seconds", Value: 6000}, {Name: "with_change_at_most_seconds", Value: 6500}, {Name: "as_owned_at_most_seconds", Value: 5900},
		},
		Budgets: []tuning.BudgetOutlook{
			{Of: "energy", Limit: 2e6, Own: about(1.29e6, 1.19e6, 1.39e6), Unenforced: tuning.ReasonModelled},
			{Of: "time", Limit: 6000, Own: about(5500, 5400, 5900), Change: about(6000, 5600, 6500)},
		},
		Alternatives: alternatives(tuning.Hold),
	}
	unmeasured := tuning.Decision{
		Action: tuning.Hold, Reason: tuning.ReasonProfiling, Forecast: &tuning.Forecast{Reason: tuning.ReasonProfiling},
		Budgets: []tuning.BudgetOutlook{{Of: "energy", Limit: 2e6, Unenforced: tuning.ReasonNoSamples}},
	}
	epochs := tuning.Decision{
		Action: tuning.Hold, Reason: tuning.ReasonUncertain,
		Evidence: []tuning.Evidence{{Name: "predicted_saving_epochs", Value: 3.5}, {Name: "restart_cost_epochs", Value: 2}, {Name: "saving_at_least_epochs", Value: 1}},
		Forecast: &tuning.Forecast{Basis: tuning.BasisPresent, Measured: 1, Epochs: about(1, 1, 1), Seconds: about(60, 50, 75)},
		Prices:   &tuning.Prices{Unit: "epochs", Restart: 2, Margin: 1.5},
		Budgets:  []tuning.BudgetOutlook{{Of: "time", Limit: 30, Own: about(25, 20, 35), Overruns: true}},
		Alternatives: []tuning.Alternative{
			{Settings: cores(4), From: tuning.OriginPresent, Taken: true, Reason: tuning.ReasonUncertain, Rest: about(1, 0.9, 1.2)},
			{Settings: cores(8), From: tuning.OriginOwner, Reason: tuning.ReasonWorthless, Rest: about(2, 2, 2), Saving: about(-1, -1.2, -0.8)},
		},
	}
	r := &reconcile.Record{Identity: reconcile.Identity{Job: "9", Name: "train", Owner: "alice", Submitted: start}, Request: reconcile.Request{Own: cores(8)}}
	r.History = append(r.History, reconcile.Entry{At: at(5), Reason: class.Reason, Class: class})
	for i, d := range []tuning.Decision{unmeasured, move, late, epochs} {
		r.History = append(r.History, reconcile.Entry{At: at(10 * (i + 1)), Reason: d.Reason, Decision: &d})
	}
	return r
}

func TestADecisionIsShownInFullBesideItsSentence(t *testing.T) {
	t.Parallel()
	r := considered()
	told := 0
	for _, l := range story.Tell(r).Lines {
		if l.Decision == nil {
			continue
		}
		if diff := cmp.Diff(r.History[told+1].Decision, l.Decision); diff != "" {
			t.Errorf("decision %d (-decided +told):\n%s", told, diff)
		}
		told++
	}
	if told != 4 {
		t.Errorf("%d decisions are told in full, want 4", told)
	}
}

func TestTheResultOfAReplayIsShownInWords(t *testing.T) {
	t.Parallel()
	hold := tuning.Decision{Action: tuning.Hold, Reason: tuning.ReasonPaused}
	r := &reconcile.Record{
		Identity: reconcile.Identity{Job: "9"},
		Story: reconcile.Story{Dropped: &reconcile.Dropped{Decisions: 3}, Decided: []reconcile.Decided{
			{Action: tuning.Hold, Reason: tuning.ReasonPaused, Sum: "of another version"},
			{Action: tuning.Move, Reason: tuning.ReasonProbeWon, Settings: cores(2)},
		}},
	}
	var s api.Story
	story.AddReplays(&s, r, func(tuning.State) tuning.Decision { return hold })
	if s.Dropped != 3 || len(s.Replays) != 2 {
		t.Fatalf("%+v", s)
	}
	for i, want := range []string{"from other numbers", "A replay now decides to leave it as it is"} {
		if text := s.Replays[i].Text; !strings.Contains(text, want) || !strings.HasSuffix(text, ".") {
			t.Errorf("%q, want %q in it", text, want)
		}
	}
	if s.Replays[0].Same || !s.Replays[0].Alike || s.Replays[1].Alike || s.Replays[1].State == nil {
		t.Errorf("%+v", s.Replays)
	}
}
