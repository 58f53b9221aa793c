package story_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/tuning"
)

func whyOf(action tuning.Action, reason tuning.Reason, es ...tuning.Evidence) []string {
	s := story.Tell(&reconcile.Record{
		Identity: reconcile.Identity{Owner: "o", Name: "n"},
		Story: reconcile.Story{History: []reconcile.Entry{{
			Decision: &tuning.Decision{Action: action, Reason: reason, Settings: cores(2), Evidence: es},
		}}},
	})
	return append([]string{s.Lines[1].Text}, s.Lines[1].Why...)
}

func TestEveryDecisionHasItsNumbersInWords(t *testing.T) {
	t.Parallel()
	number := func(name string, v float64) tuning.Evidence { return tuning.Evidence{Name: name, Value: v} }
	word := func(name, text string) tuning.Evidence { return tuning.Evidence{Name: name, Text: text} }
	for _, c := range []struct {
		name   string
		action tuning.Action
		reason tuning.Reason
		es     []tuning.Evidence
		want   []string
	}{
		{
			"the queue is longer than the saving", tuning.Hold, tuning.ReasonLongQueue,
			[]tuning.Evidence{number("remaining_seconds", 5400), number("predicted_saving_seconds", 250.4), number("restart_cost_seconds", 4.2), number("queue_wait_seconds", 7265), number("margin", 1.5), number("predicted_saving_share", .042)},
			[]string{
				"its remaining epochs take about 1 h 30 min", "predicted to save 4 min 10 s", "restarting it costs about 4.2 s",
				"it would wait about 2 h 1 min in the queue", "the saving must be 1.5 times the cost",
				"the response model expects it to save 4.2 % of each epoch",
			},
		},
		{
			"a saving is a cost", tuning.Hold, tuning.ReasonWorthless,
			[]tuning.Evidence{
				{Name: "predicted_saving_cost", Value: 1.234, Text: "EUR"},
				{Name: "restart_cost_cost", Value: .5, Text: "EUR"},
				{Name: "saving_at_least_cost", Value: 1, Text: "EUR"},
				word("cost_without", "energy"),
			},
			[]string{
				"predicted to save 1.23 EUR", "restarting it costs about 0.5 EUR", "in nine of ten cases at least 1 EUR",
				"the cost is counted without its energy, which was not measured throughout",
			},
		},
		{
			"a reservation is near", tuning.Hold, tuning.ReasonNearClosing,
			[]tuning.Evidence{number("closed_in_seconds", 0.25), word("closed_by", "yearly"), number("reserve_seconds", 300)},
			[]string{"its nodes are unavailable in 250 ms", "because of reservation or maintenance yearly", "the site wants 5 min left before that"},
		},
		{
			"a recalled setting is doubted", tuning.Probe, tuning.ReasonDoubted,
			[]tuning.Evidence{number("epoch_seconds", 12), number("kind_untuned_epoch_seconds", 10), number("kind_untuned_runs", 1), number("doubted_above_seconds", 11), number("epochs_measured", 2)},
			[]string{
				"an epoch takes 12.0 s", "untuned, jobs of its kind took 10.0 s an epoch", "seen in 1 untuned run",
				"above 11.0 s an epoch tuning is in doubt", "measured over 2 epochs",
			},
		},
		{
			"a setting costs more than it may", tuning.RollBack, tuning.ReasonStopLoss,
			[]tuning.Evidence{
				number("pace", 1.52), number("attempt_loss_epochs", 3), number("leaving_epochs", 1), number("loss_epochs", 4), number("way_back_epochs", 2),
				number("loss_limit_epochs", 6), number("loss_limit_share", .05), number("proven_saving_epochs", 5),
			},
			[]string{
				"an epoch takes at least 1.52 times as long as under its owner's settings", "this attempt has cost as much as 3 epochs under its owner's settings",
				"leaving it now costs as much as 1 epoch under its owner's settings", "failed tuning has cost as much as 4 epochs under its owner's settings",
				"going back costs as much as 2 epochs under its owner's settings", "tuning that fails may cost as much as 6 epochs under its owner's settings",
				"tuning that fails may cost 5.0 % of its objective", "its best setting is sure to save as much as 5 epochs under its owner's settings",
			},
		},
		{
			"a try could cost more than it may", tuning.Hold, tuning.ReasonLossLimit,
			[]tuning.Evidence{number("both_ways_epochs", 16.2), number("trying_epochs", 1.25)},
			[]string{"going there and back costs as much as 16.2 epochs under its owner's settings", "trying it may cost as much as 1.25 epochs under its owner's settings"},
		},
		{
			"a setting is slower than allowed", tuning.RollBack, tuning.ReasonSlower,
			[]tuning.Evidence{number("log_time", .47), number("max_slowdown", 1.1)},
			[]string{"an epoch takes 1.60 times as long as under its owner's settings", "its owner allows 1.1 times as long"},
		},
		{
			"a prediction decides", tuning.Hold, tuning.ReasonWorthless,
			[]tuning.Evidence{number("predicted_log_ratio", -.1), number("predicted_log_ratio_at_most", .1), number("predicted_log_time", 0), number("predicted_log_time_at_most", .2)},
			[]string{
				"the response model expects its objective to change by -9.5 %", "with 95 % certainty by at most +10.5 %",
				"the response model expects its time to change by +0.0 %", "with 95 % certainty by at most +22.1 %",
			},
		},
		{
			"memory is right-sized", tuning.Move, tuning.ReasonRightSized,
			[]tuning.Evidence{number("memory_peak_bytes", 1.5*(1<<30)), number("memory_runs_seen", 3)},
			[]string{"jobs of its kind needed at most 1.5 GiB", "seen in 3 runs"},
		},
		{
			"a comparison", tuning.RollBack, tuning.ReasonRegressed,
			[]tuning.Evidence{number("log_ratio", 0.1), number("log_ratio_low", 0.05), number("log_ratio_high", 13.8), number("pairs", 7)},
			[]string{"its objective changed by +10.5 %", "at least by +5.1 %", "at most by any amount", "from 7 pairs of epochs"},
		},
		{
			"what would be done in another mode", tuning.Hold, tuning.ReasonRecommend,
			[]tuning.Evidence{word("would", "move"), word("because", "class-known"), word("class", "c2"), number("class_runs", 4), number("distance", 1.234), number("radius", 2)},
			[]string{
				"otherwise it would move", "since its class is known and has a better setting", "it resembles the jobs of class c2",
				"that class was learned from 4 runs", "it is 1.23 away from the nearest class", "that class reaches 2.00 far",
			},
		},
		{
			"a return tries a setting that no run had", tuning.Move, tuning.ReasonTryingReturn,
			[]tuning.Evidence{
				number("returns_seen", 4), number("returns_tried", 1), number("returns_allowed", 6), word("return_setting", "cores=4"),
				number("return_setting_runs", 0), number("return_expected_log_ratio", -0.1), number("return_standard_error", 0.2),
				number("returns_differ", 0.1),
			},
			[]string{
				"4 earlier runs of its kind measured", "settings tried so far by 1 run of its kind, those under way included", "at most 6 runs may try one",
				"the setting is cores=4", "no run had it yet", "it is expected to change the objective by -9.5 %", "give or take 22 %",
				"runs under one setting differ by about 11 %",
			},
		},
		{
			"a return tries a setting again", tuning.Move, tuning.ReasonTryingReturn,
			[]tuning.Evidence{number("return_setting_runs", 1)},
			[]string{"1 run had it, which is too few to be sure"},
		},
		{
			"only whole runs could end the hold", tuning.Hold, tuning.ReasonWholeRuns,
			[]tuning.Evidence{
				word("hyperparameters", "batch lr"), number("returns_seen", 2), number("returns_tried", 0), number("returns_allowed", 6),
				number("own_runs_seen", 2), number("own_runs_needed", 3),
			},
			[]string{
				"these knobs change what it learns: batch, lr", "2 earlier runs of its kind measured",
				"settings tried so far by 0 runs of its kind, those under way included", "at most 6 runs may try one",
				"2 runs under its owner's values showed their final quality", "others are tried after 3 such runs",
			},
		},
		{
			"and its owner allows none", tuning.Hold, tuning.ReasonWholeRuns,
			[]tuning.Evidence{word("hyperparameters", "lr"), number("returns_allowed", 0)},
			[]string{"these knobs change what it learns: lr", "no run may try others, since budget returns is 0"},
		},
		{
			"unknown numbers", tuning.Hold, tuning.ReasonWorthless,
			[]tuning.Evidence{
				number("cooling_seconds", 200000), number("cache_bytes", 2048), number("spent_joules", 25000), number("odd_log_ratio", -0.1),
				number("colour", 3), word("mood", "blue"),
			},
			[]string{"cooling: 2 days 8 h", "cache: 2 KiB", "spent: 25.0 kJ", "odd effect: -9.5 %", "colour: 3", "mood: blue"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := whyOf(c.action, c.reason, c.es...)
			if diff := cmp.Diff(c.want, got[1:]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if !strings.Contains(got[0], c.reason.Sentence()) || strings.Contains(strings.Join(got, ""), "_") {
				t.Errorf("%q", got)
			}
		})
	}
}
