package reconcile

import (
	"testing"

	"pitchpipe/controller/tuning"
)

func TestOfSeveralNodesOnlyTheFirstIsMeasured(t *testing.T) {
	t.Parallel()
	joules := tuning.Joules(5)
	whole := func(r tuning.Reason) Measurement {
		return Measurement{
			Epochs:  []tuning.Epoch{{Number: 1, Joules: &joules, Source: "rapl"}, {Number: 2}},
			Profile: tuning.Profile{Schema: "sw/1", PeakRSS: 7}, Reason: r, Peak: 7, Total: 9,
		}
	}
	for _, c := range []struct {
		name         string
		reason, want tuning.Reason
	}{
		{"a profile of the first node is none of the job", tuning.ReasonNone, tuning.ReasonPartial},
		{"what else there is none for goes before", tuning.ReasonWarmingUp, tuning.ReasonWarmingUp},
	} {
		in := whole(c.reason)
		got := in.partial(4)
		if got.Reason != c.want || got.Peak != 0 || got.Profile.Schema != "" || got.Total != 9 {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got.Epochs[0].Source != "rapl, 1 of 4 nodes" || got.Epochs[1].Source != "" {
			t.Errorf("%s: sources %q and %q", c.name, got.Epochs[0].Source, got.Epochs[1].Source)
		}
		if in.Epochs[0].Source != "rapl" {
			t.Errorf("%s: what was read has the source %q now", c.name, in.Epochs[0].Source)
		}
	}
}
