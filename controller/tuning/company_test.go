package tuning_test

import (
	"testing"

	"pitchpipe/controller/tuning"
)

func TestEpochsAreComparedInEqualCompany(t *testing.T) {
	t.Parallel()
	cores := func(n float64) tuning.Settings { return tuning.Settings{tuning.Cores: tuning.Number(n)} }
	own := cores(2)
	epoch := func(n float64, siblings int, crowded, polluted bool) tuning.Epoch {
		return tuning.Epoch{Settings: cores(n), Siblings: siblings, Crowded: crowded, Polluted: polluted}
	}
	for _, tc := range []struct {
		name string
		of   tuning.Epoch
		want bool // it counts as disturbed
	}{
		{"siblings are no disturbance", epoch(2, 3, true, true), false},
		{"nor are they to fewer cores", epoch(1, 3, true, true), false},
		{"more cores take from the siblings", epoch(4, 3, true, true), true},
		{"others than siblings disturb", epoch(1, 3, false, true), true},
		{"crowded without siblings is disturbed", epoch(2, 0, true, true), true},
		{"an emptier node is not the gain of a setting", epoch(1, 1, false, false), true},
		{"one sibling less of three is no emptier node", epoch(1, 2, false, false), false},
		{"a fuller node makes a setting look worse, which may count", epoch(1, 5, false, false), false},
		{"the owner's own epochs count on an emptier node too", epoch(2, 0, false, false), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			epochs := []tuning.Epoch{epoch(2, 3, false, false), epoch(2, 3, false, false), epoch(2, 3, false, false), tc.of}
			if got := tuning.InCompany(epochs, own)[3].Polluted; got != tc.want {
				t.Errorf("disturbed: %t, want %t", got, tc.want)
			}
		})
	}
	alone := []tuning.Epoch{epoch(2, 0, true, true)}
	if !tuning.InCompany(alone, own)[0].Polluted {
		t.Error("without siblings a disturbance is one")
	}
}
