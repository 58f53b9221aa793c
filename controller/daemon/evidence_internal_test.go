package daemon

import (
	"slices"
	"testing"
	"time"

	"pitchpipe/controller/report"
	"pitchpipe/controller/tuning"
)

func TestEpochsThatChoseTheSettingDoNotJudgeIt(t *testing.T) {
	t.Parallel()
	row := func(seconds float64, attempt int, probed ...int) report.Row {
		begin := time.Unix(0, 0)
		end := begin.Add(time.Duration(seconds * float64(time.Second)))
		return report.Row{Epochs: []tuning.Epoch{{Number: 1, Attempt: attempt, Start: begin, End: end}}, Probed: probed}
	}
	for _, c := range []struct {
		tuned report.Row
		want  tuning.Reason
	}{{row(5, 2), tuning.ReasonImproved}, {row(5, 2, 2), tuning.ReasonNoSamples}} {
		pairs := slices.Repeat([]report.Pair{{Tuned: c.tuned, Untuned: row(10, 1)}}, 10)
		if got := compareJobs(pairs, report.Terms{}); got.Reason != c.want {
			t.Errorf("attempts that chose %v: %s, want %s", c.tuned.Probed, got.Reason, c.want)
		}
		if c.tuned.Epochs[0].Warmup {
			t.Error("the row itself was changed")
		}
	}
}
