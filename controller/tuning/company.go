package tuning

import (
	"slices"
)

// emptier is how many times as many jobs of a kind ran on a node where a comparison would take the
// gain of an emptier node for that of a setting.
const emptier = 1.4

// InCompany returns epochs as they can be compared where jobs of one kind run side by side on a node all
// the time. That siblings crowd an epoch is then no disturbance, but for a setting with more cores than the
// owner's, which takes them from the siblings. An epoch under another setting than the owner's counts as
// disturbed where clearly fewer siblings ran than under the owner's.
func InCompany(epochs []Epoch, own Settings) []Epoch {
	if !slices.ContainsFunc(epochs, func(e Epoch) bool { return e.Siblings > 0 }) {
		return epochs
	}
	var usual []int // siblings
	for _, e := range epochs {
		if !e.Warmup && e.Settings.Equal(own) {
			usual = append(usual, e.Siblings)
		}
	}
	slices.Sort(usual)
	out := slices.Clone(epochs)
	for i, e := range out {
		if e.Crowded && e.Siblings > 0 && e.Settings[Cores].Float() <= own[Cores].Float() {
			out[i].Polluted = false
		}
		if n := len(usual); n > 0 && !e.Settings.Equal(own) && emptier*float64(1+e.Siblings) < float64(1+usual[n/2]) {
			out[i].Polluted = true
		}
	}
	return out
}
