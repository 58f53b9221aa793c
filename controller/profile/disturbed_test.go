package profile_test

import (
	"testing"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// The steady job uses its two cores of four in full; the node is busy with half
// a core besides.
func TestWhatDisturbsAnEpoch(t *testing.T) {
	t.Parallel()
	onFour := profile.Spec{NodeCores: 4, Settings: twoCores()}
	waiting := steady().with(api.ColCPUPressure, 0.4)
	for name, c := range map[string]struct {
		job  job
		spec profile.Spec
		want profile.Disturbance
	}{
		"a quiet node does not":                               {steady(), onFour, ""},
		"others on their own cores do not":                    {steady().with(api.ColNodeBusy, 4), onFour, ""},
		"others on the job's cores do":                        {steady().with(api.ColNodeBusy, 4.4), onFour, profile.Others},
		"a little more than their own is noise":               {steady().with(api.ColNodeBusy, 4.2), onFour, ""},
		"on a node that is all the job's, others do":          {steady(), profile.Spec{NodeCores: 2}, profile.Others},
		"an unknown number of cores judges nothing":           {steady().with(api.ColNodeBusy, 9), profile.Spec{}, ""},
		"a hypervisor that takes more than a twentieth does":  {steady().with(api.ColNodeSteal, 0.21), onFour, profile.Steal},
		"a hypervisor that takes less does not":               {steady().with(api.ColNodeSteal, 0.19), onFour, ""},
		"without the node's time nothing is found":            {steady().without(api.ColNodeBusy, api.ColNodeSteal), onFour, ""},
		"without the job's time nothing is found":             {steady().with(api.ColNodeBusy, 9).without(api.ColCPUSeconds, api.ColUserSeconds, api.ColTaskClock), onFour, ""},
		"waiting for itself is no disturbance":                {waiting, onFour, ""},
		"waiting for others is":                               {waiting.with(api.ColNodeBusy, 4.1), onFour, profile.Pressure},
		"waiting while others used a tick more is not":        {waiting.with(api.ColNodeBusy, 4.055), onFour, ""},
		"more threads than cores wait for each other":         {waiting.with(api.ColNodeBusy, 4.1), profile.Spec{NodeCores: 4, Settings: twoCores().With(tuning.Threads, tuning.Number(3))}, ""},
		"threads are counted where the settings do not say":   {waiting.with(api.ColNodeBusy, 4.1), profile.Spec{NodeCores: 4}, ""},
		"cores come from the settings where no column has it": {steady().with(api.ColNodeBusy, 4.4).without(api.ColAllocatedCores), onFour, profile.Others},
		"unknown cores judge nothing":                         {steady().with(api.ColNodeBusy, 4.4).without(api.ColAllocatedCores), profile.Spec{NodeCores: 4}, ""},
		"task clock stands in for CPU time":                   {steady().with(api.ColNodeBusy, 4.4).without(api.ColCPUSeconds, api.ColUserSeconds), onFour, profile.Others},
		"user and system stand in for CPU time":               {steady().with(api.ColNodeBusy, 4.4).without(api.ColCPUSeconds, api.ColTaskClock), onFour, profile.Others},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := c.job.window(5, ended(1, 2), ended(2, 4))
			e := profile.Epochs(w, c.spec)[1]
			if got := profile.Disturbed(w, e, c.spec); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if e.Polluted != (c.want != "") {
				t.Errorf("polluted = %v", e.Polluted)
			}
		})
	}
}

func TestAnEpochWithoutLengthIsNotJudged(t *testing.T) {
	t.Parallel()
	w := steady().with(api.ColNodeSteal, 4).window(5)
	if got := profile.Disturbed(w, tuning.Epoch{Start: at(2), End: at(2)}, profile.Spec{NodeCores: 4}); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestAnEpochInWhichTheJobWasSuspendedIsDisturbed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to float64
		want     []bool // of three epochs that end at 2, 4 and 6 s
	}{
		"within one":      {2.5, 3.5, []bool{false, true, false}},
		"over the end":    {3.5, 4.5, []bool{false, true, true}},
		"from end to end": {2, 4, []bool{false, true, false}},
		"before it began": {-2, 0, []bool{false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := profile.Spec{Still: []tuning.Span{{From: at(c.from), To: at(c.to)}}}
			w := steady().window(7, ended(1, 2), ended(2, 4), ended(3, 6))
			epochs := profile.Epochs(w, spec)
			if len(epochs) != len(c.want) {
				t.Fatalf("%d epochs, want %d", len(epochs), len(c.want))
			}
			for i, e := range epochs {
				if e.Polluted != c.want[i] || c.want[i] != (profile.Disturbed(w, e, spec) == profile.Still) {
					t.Errorf("epoch %d: polluted %v (%s), want %v", e.Number, e.Polluted, profile.Disturbed(w, e, spec), c.want[i])
				}
			}
		})
	}
}
