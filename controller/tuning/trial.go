package tuning

import (
	"math"
	"slices"
)

// TrialsOf summarises epochs into one Trial per setting, in the order in which
// the settings were first used. Warm-up and polluted epochs are left out, and so
// is a setting that has no other. Own marks the reference.
func TrialsOf(epochs []Epoch, own Settings) []Trial {
	var keys []string
	groups := map[string][]Epoch{}
	for _, e := range epochs {
		if e.Warmup || e.Polluted || e.Seconds() <= 0 {
			continue
		}
		key := e.Settings.Key()
		if _, seen := groups[key]; !seen {
			keys = append(keys, key)
		}
		groups[key] = append(groups[key], e)
	}
	trials := make([]Trial, 0, len(keys))
	for _, key := range keys {
		trials = append(trials, trialOf(groups[key], own))
	}
	return trials
}

func trialOf(epochs []Epoch, own Settings) Trial {
	t := Trial{
		Settings: epochs[0].Settings, Epochs: len(epochs), Source: epochs[0].Source,
		Reference: epochs[0].Settings.Equal(own), Quality: epochs[len(epochs)-1].Quality,
	}
	logs := make([]float64, len(epochs))
	var joules Joules
	measured := true
	for i, e := range epochs {
		t.Seconds += e.Seconds() / float64(len(epochs))
		logs[i] = math.Log(e.Seconds())
		if e.Joules == nil || e.Source != t.Source {
			measured = false
			continue
		}
		joules += *e.Joules / Joules(len(epochs))
	}
	if measured {
		t.Joules = &joules
	}
	t.SDLog = sd(logs)
	return t
}

// sd is the sample standard deviation, 0 for fewer than two values.
func sd(x []float64) float64 {
	if len(x) < 2 {
		return 0
	}
	mean := 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	sum := 0.0
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	return math.Sqrt(sum / float64(len(x)-1))
}

// Reference returns the trial of the owner's own settings.
func Reference(trials []Trial) (Trial, bool) {
	i := slices.IndexFunc(trials, func(t Trial) bool { return t.Reference })
	if i < 0 {
		return Trial{}, false
	}
	return trials[i], true
}
