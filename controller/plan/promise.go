package plan

import (
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/tuning"
)

const (
	// optimism is the share of the rest that an unknown setting may save where nothing
	// bounds it: as if the job ran twice as fast under it. Of what is bounded, half of
	// the bound is expected.
	optimism = 0.5

	// idleCores is what is left of the expected saving where the time alone counts and a
	// setting has fewer cores: what the job used it loses, what it did not use gains
	// nothing.
	idleCores = 0.2

	// unlike is by how much, in logarithms, a setting that nobody knows is taken to differ
	// from what is expected of it.
	unlike = 0.1
)

// promise is the share of the rest that a setting which this job has not measured is
// expected to save: by what it changes, and by what its kind showed under it, as far as
// that is sharper than what settings usually differ by. Each setting that was tried and disappointed, here
// or in another run of the kind, makes the next less promising.
func (s view) promise(target tuning.Settings) float64 {
	disappointments := 0.0
	for _, t := range s.Trials {
		if g, ok := s.gainOf(t); ok && !t.Reference && !(g.ratio < -noise) {
			disappointments++
		}
	}
	for _, e := range s.KindEffects {
		at := s.target(s.usable(e.Settings))
		if e.Runs > 0 && !(e.LogRatio < -noise) && !sameButMemory(at, s.Own) && !sameButMemory(at, target) && !s.ranUnder(at) {
			disappointments += min(fresh(e), 1)
		}
	}
	share := s.expected(target) / (1 + disappointments/2)
	if e, ok := s.ofKind(target); ok {
		se := standardError(e)
		known := unlike * unlike / (unlike*unlike + se*se)
		share = (1-known)*share - known*math.Expm1(min(e.LogRatio, 0))
	}
	return share
}

// expected is the promise before anybody tried anything. More cores save at most what they
// take over from the others, and half of that is expected, as of threads. Fewer save what
// the site expects of an unknown setting. A lower limit on a processor's power saves
// joules, never time. What a hyperparameter does nobody can tell, so that it is tried
// wherever it might repay.
func (s view) expected(target tuning.Settings) float64 {
	base := s.Site.ExpectedSaving
	c := s.change(target)
	if c.strange {
		return max(base, optimism)
	}
	joules, seconds := s.Policy.Objective.Weights(s.Policy.Weight)
	if !(joules+seconds > 0) || c.unclear {
		return base
	}
	share := seconds / (joules + seconds)
	both := func(time, energy float64) float64 { return share*time + (1-share)*energy }
	switch {
	case c.more > 1:
		return both(max(base, optimism*(1-1/c.more)), base)
	case c.fewer < 1:
		return s.kept(c) * both(base*idleCores, base)
	case c.clock < 1:
		// Watts rise with the cube of the clock and seconds fall with it at most, so that
		// joules fall by two thirds of the power's fall, in logarithms.
		return s.kept(c) * both(0, max(base, optimism*(1-math.Pow(c.clock, 2.0/3))))
	}
	return base
}

// kept is how likely a setting that takes something away keeps to the slowdown that the
// owner allows, where any slowdown from none to the most is as likely.
func (s view) kept(c change) float64 {
	_, slower := s.stand()
	allowed, most := s.Policy.MaxSlowdown/slower, c.slowest()
	switch {
	case s.Policy.MaxSlowdown == 0 || most <= allowed:
		return 1
	case !(allowed >= 1):
		return 0
	}
	return (allowed - 1) / (most - 1)
}

// loses is by which share an epoch of a setting that this job has not measured is expected
// to be dearer than the owner's, where it brings nothing: what its kind lost. Fewer cores make it longer in
// proportion at most, and less power by its cube root; half of that is expected.
func (s view) loses(target tuning.Settings) float64 {
	if e, ok := s.ofKind(target); ok {
		return growth(min(e.LogRatio, dearest))
	}
	c := s.change(target)
	if c.strange || c.unclear || c.more > 1 || !(c.fewer < 1 || c.clock < 1) {
		return strange
	}
	return growth(min(s.factors()*math.Log1p(optimism*(c.slowest()-1)), dearest))
}

// change is what a setting does to what a job has of its machine, from where it stands.
type change struct {
	strange bool    // a knob of which nobody can tell
	unclear bool    // a value that is no number
	more    float64 // times as many cores, threads or the like, 1 or above
	fewer   float64 // as many cores, threads or the like, above 0, 1 or below
	clock   float64 // as much power, above 0, 1 or below
}

// slowest is how many times as long an epoch may take where all that is missing is missed.
func (c change) slowest() float64 { return 1 / (c.fewer * math.Cbrt(c.clock)) }

// stand is where the search goes on from, and how many times as long an epoch takes there
// as under the owner's settings: the best that this job has measured.
func (s view) stand() (from tuning.Settings, slower float64) {
	own, ok := tuning.Reference(s.Trials)
	if !ok || s.Best == nil || !(s.BestGain < 0) || !(s.Best.Seconds > 0) || !(own.Seconds > 0) {
		return s.Own, 1
	}
	return s.Best.Settings, s.Best.Seconds / own.Seconds
}

func (s view) change(target tuning.Settings) change {
	from, _ := s.stand()
	c := change{more: 1, fewer: 1, clock: 1}
	for _, name := range from.Diff(target) {
		if name == tuning.Memory {
			continue
		}
		power := powers(name)
		if power == 0 && !works(name) {
			c.strange = true
			continue
		}
		was, now := from[name].Float(), target[name].Float()
		switch {
		case !(was > 0) || !(now > 0):
			c.unclear = true
		case now > was:
			c.more = max(c.more, now/was)
		case power > 0:
			c.clock = min(c.clock, math.Pow(now/was, power))
		default:
			c.fewer = min(c.fewer, now/was)
		}
	}
	return c
}

// works tells whether a knob says how many do the work.
func works(name string) bool {
	return tuning.IsSystem(name) || slices.Contains([]string{"nodes", "replicas", "workers"}, name)
}

// powers is the power to which the watts of a processor rise with a knob that bounds
// them, by the names that such knobs go by; 0: it is no such knob.
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

// mostPromising is what any setting may promise this job: where not even that repays a
// probe the job is too short for all.
func (s view) mostPromising() float64 { return math.Max(s.Site.ExpectedSaving, optimism) }
