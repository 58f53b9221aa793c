package verify

import (
	"encoding/json"
	"testing"
	"time"

	"pitchpipe/controller/tuning"
)

// epochs makes epochs of the given seconds, numbered from first.
func epochs(first int, seconds ...float64) []tuning.Epoch {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	out := make([]tuning.Epoch, 0, len(seconds))
	for i, s := range seconds {
		end := start.Add(time.Duration(s * float64(time.Second)))
		out = append(out, tuning.Epoch{Number: first + i, Attempt: 1, Start: start, End: end})
		start = end
	}
	return out
}

// around makes n durations that swing around mean by the given share.
func around(n int, mean, share float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = mean * (1 + share*float64(1-2*(i%2)))
	}
	return out
}

func powered(es []tuning.Epoch, watts float64, source string) []tuning.Epoch {
	for i := range es {
		es[i].Joules = new(tuning.Joules(es[i].Seconds() * watts))
		es[i].Source = source
	}
	return es
}

func graded(es []tuning.Epoch, quality ...float64) []tuning.Epoch {
	for i := range es {
		es[i].Quality = new(quality[min(i, len(quality)-1)])
	}
	return es
}

func marked(es []tuning.Epoch, mark func(*tuning.Epoch)) []tuning.Epoch {
	for i := range es {
		mark(&es[i])
	}
	return es
}

func TestCompareWithinOneJob(t *testing.T) {
	t.Parallel()
	warm := func(e *tuning.Epoch) { e.Warmup = true }
	dirty := func(e *tuning.Epoch) { e.Polluted = true }
	tests := []struct {
		name    string
		in      Input
		verdict tuning.Verdict
		reason  tuning.Reason
	}{
		{"nothing measured is inconclusive", Input{}, tuning.Inconclusive, tuning.ReasonNoSamples},
		{
			"one epoch on each side is inconclusive however far they are apart",
			Input{Before: epochs(1, 10), After: epochs(2, 1)},
			tuning.Inconclusive, tuning.ReasonInconclusive,
		},
		{
			"a third less time is an improvement after a few epochs",
			Input{Before: epochs(1, around(4, 10, .03)...), After: epochs(5, around(6, 6.6, .03)...)},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"two untuned epochs are enough for a large effect",
			Input{Before: epochs(1, around(2, 10, .03)...), After: epochs(3, around(8, 6, .03)...)},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"a third more time is a regression",
			Input{Before: epochs(1, around(4, 10, .03)...), After: epochs(5, around(6, 14, .03)...)},
			tuning.Regressed, tuning.ReasonRegressed,
		},
		{
			"no effect stays inconclusive while another attempt alone could differ by more",
			Input{Before: epochs(1, around(60, 10, .01)...), After: epochs(61, around(60, 10, .01)...)},
			tuning.Inconclusive, tuning.ReasonInconclusive,
		},
		{
			"warm-up epochs do not judge",
			Input{Before: epochs(1, around(8, 10, .02)...), After: marked(epochs(9, around(8, 5, .02)...), warm)},
			tuning.Inconclusive, tuning.ReasonNoSamples,
		},
		{
			"polluted epochs do not judge, and the reason says so",
			Input{Before: marked(epochs(1, around(8, 10, .02)...), dirty), After: epochs(9, around(8, 5, .02)...)},
			tuning.Inconclusive, tuning.ReasonPolluted,
		},
		{
			"a setting slower than allowed is a regression though it saves energy",
			Input{
				Before:  powered(epochs(1, around(8, 10, .02)...), 100, "rapl"),
				After:   powered(epochs(9, around(8, 14, .02)...), 30, "rapl"),
				Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1,
			},
			tuning.Regressed, tuning.ReasonSlower,
		},
		{
			"slower within what is allowed is an improvement where it saves energy",
			Input{
				Before:  powered(epochs(1, around(8, 10, .02)...), 100, "rapl"),
				After:   powered(epochs(9, around(8, 10.5, .02)...), 60, "rapl"),
				Measure: tuning.Measure{Objective: tuning.Energy}, MaxSlowdown: 1.1,
			},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"a job that falls back after the move lost quality",
			Input{
				Before:  graded(epochs(1, around(4, 10, .03)...), .80, .85, .90),
				After:   graded(epochs(5, around(6, 6.6, .03)...), .70),
				Quality: &tuning.Quality{Direction: "max", MaxLoss: .01},
			},
			tuning.Regressed, tuning.ReasonQualityLost,
		},
		{
			"quality that goes on rising does not stand in the way",
			Input{
				Before:  graded(epochs(1, around(4, 10, .03)...), .80, .85, .90),
				After:   graded(epochs(5, around(6, 6.6, .03)...), .91, .93, .95),
				Quality: &tuning.Quality{Direction: "max", MaxLoss: .01},
			},
			tuning.Improved, tuning.ReasonImproved,
		},
		{
			"two epochs of lower quality after a restart are not yet a loss",
			Input{
				Before:  graded(epochs(1, around(6, 10, .03)...), .9),
				After:   graded(epochs(5, around(2, 6.6, .03)...), .5),
				Quality: &tuning.Quality{Direction: "max", MaxLoss: .01},
			},
			tuning.Improved, tuning.ReasonImproved,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := Compare(tt.in)
			if got.Verdict != tt.verdict || got.Reason != tt.reason {
				t.Errorf("Compare = %s (%s) %.3f [%.3f, %.3f], want %s (%s)",
					got.Verdict, got.Reason, got.LogRatio, got.Low, got.High, tt.verdict, tt.reason)
			}
			if _, err := json.Marshal(got); err != nil {
				t.Errorf("outcome cannot be stored: %v", err)
			}
		})
	}
}
