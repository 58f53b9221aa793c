package respond

import (
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

// strange is what a knob without a law does to seconds and joules when it goes from one
// value to another. A limit on a processor's power or clock has half of what the cube law
// allows, give or take as much: watts rise with the cube of the clock, and seconds fall with
// it at most, and a processor that draws less than its limit feels nothing. Threads and the like have half of what Amdahl allows. Of any other nothing is
// known.
func strange(name string, was, now float64) (time, joules Ratio) {
	power := powers(name)
	switch {
	case !(was > 0) || !(now > 0) || power == 0 && !works(name):
		return Ratio{0, knobSD}, Ratio{0, knobSD}
	case power > 0:
		p := power * math.Log(now/was)
		return Ratio{-p / 6, math.Abs(p) / 6}, Ratio{p / 6, math.Abs(p) / 4}
	}
	n := math.Log(now / was)
	return Ratio{-n / 4, math.Abs(n) / 2}, Ratio{0, math.Abs(n) / 2}
}

// works reports whether a knob says how many do the work.
func works(name string) bool {
	return tuning.IsSystem(name) || slices.Contains([]string{"nodes", "replicas", "workers"}, name)
}

// powers is the power to which the watts of a processor rise with a knob that bounds them,
// by the names that such knobs go by; 0: it is no such knob.
func powers(name string) float64 {
	for _, unit := range []string{"_watts", "_mhz", "_ghz", "_khz"} {
		name = strings.TrimSuffix(name, unit)
	}
	switch {
	case slices.Contains([]string{tuning.PowerLimit, "power_cap"}, name):
		return 1
	case slices.Contains([]string{"frequency", "clock"}, name):
		return 3
	}
	return 0
}

// slope is what a knob without a law does, by what this job measured under other values of
// it: per unit of the logarithm its effect is taken to be alike everywhere.
func (m *Model) slope(name string, s tuning.Settings) (time, joules Ratio) {
	was := m.facts.Own[name].Float()
	time, joules = strange(name, was, s[name].Float())
	own, ok := tuning.Reference(m.facts.Trials)
	to := math.Log(s[name].Float() / was)
	if !ok || math.IsNaN(to) || math.IsInf(to, 0) || to == 0 {
		return time, joules
	}
	for _, t := range m.facts.Trials {
		by := math.Log(t.Settings[name].Float() / was)
		if t.Reference || !(math.Abs(by) > 0) || math.IsInf(by, 0) || len(m.facts.Own.Diff(t.Settings)) > 1 {
			continue
		}
		scale := to / by
		sd := math.Hypot(m.trialSD(t, own)*math.Abs(scale), strangeSD*math.Abs(to-by))
		time = join(time, Ratio{scale * math.Log(t.Seconds/own.Seconds), sd})
		if j := joulesRatio(t, own); !math.IsNaN(j) {
			joules = join(joules, Ratio{scale * j, sd})
		}
	}
	return time, joules
}
