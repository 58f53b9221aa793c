package plan

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/tuning"
)

// Size is a job with a number of cores, and with everything else as it is.
type Size struct {
	Settings tuning.Settings
	Seconds  float64 // of an epoch, measured or predicted; 0 = unknown
}

// Sizes are a job with each number of cores that it may have, from few to many: one where
// it must stay as it is now. Those with which it may overrun its time limit, or the slowdown that its
// owner allows, are left out.
func Sizes(state tuning.State) []Size {
	s := look(state)
	base := cmp.Or(s.EpochSeconds, s.KindSeconds)
	_, measured := tuning.Reference(s.Trials)
	if !measured && s.EpochSeconds > 0 {
		base /= math.Exp(s.model().Predict(s.Current).Time.Mean)
	}
	size := func(t tuning.Settings) Size { return Size{t, base * math.Exp(s.model().Predict(t).Time.Mean)} }
	out, last := []Size{size(s.Current)}, !s.Pending && s.Restarts+1 >= s.Policy.Budget.Restarts
	if k, ok := s.Policy.Knob(tuning.Cores); ok && s.fixed() == tuning.ReasonNone {
		leads := s.Current.Only(func(name string) bool { return !s.Policy.Follows(name) })
		for _, v := range append(k.Counts(), s.Own[tuning.Cores]) {
			t := s.Policy.Over(s.Own, leads.With(tuning.Cores, v))
			if all := s.Policy.Complete(t); !measured || s.ranUnder(all) { // threads that its owner leaves to the program
				t = all
			}
			stuck := last && v.Float() < s.Current[tuning.Cores].Float() // it could never grow again
			if _, permitted := s.Policy.Permits(s.Own, t); !permitted || stuck || s.harmed(t) || s.kept(s.model().Predict(t)) <= likelyKept {
				continue
			}
			x := size(t)
			rest := x.Seconds*float64(s.EpochsTotal-s.EpochsDone) + (s.RestartCost + s.Site.LimitReserve).Seconds()
			if s.LimitLeft <= 0 || rest < s.LimitLeft.Seconds() {
				out = append(out, x)
			}
		}
	}
	slices.SortStableFunc(out, func(a, b Size) int {
		return cmp.Compare(a.Settings[tuning.Cores].Float(), b.Settings[tuning.Cores].Float())
	})
	return slices.CompactFunc(out, func(a, b Size) bool { return a.Settings[tuning.Cores] == b.Settings[tuning.Cores] })
}

// fixed returns why the number of cores stays as it is. One epoch at the present size is enough.
func (s view) fixed() tuning.Reason {
	r := touchable(s)
	if x, ok := s.trialOf(s.Current); r == tuning.ReasonNone && !s.Pending {
		if r = s.spent(); !ok || !(x.Seconds > 0) {
			r = cmp.Or(s.Measured, tuning.ReasonProfiling)
		}
	}
	return cmp.Or(s.Gate, r)
}

// resize moves a job to the size that it was allotted among others, whichever job gains.
func resize(s view) tuning.Decision {
	left := map[string]float64{} // seconds by size
	for _, x := range Sizes(s.State) {
		left[x.Settings.Key()] = x.Seconds * float64(s.EpochsTotal-s.EpochsDone)
	}
	now, then := left[s.Current.Key()], left[s.Allotted.Key()]
	evidence := []tuning.Evidence{{Name: "remaining_seconds", Value: now}, {Name: "allotted_seconds", Value: then}}
	r, why := s.overBudget(s.Allotted, false)
	switch {
	case s.fixed() != tuning.ReasonNone:
		return hold(s, s.fixed(), evidence...)
	case r != tuning.ReasonNone:
		return hold(s, r, append(evidence, why...)...)
	case then < now && s.Crowded != "":
		return hold(s, tuning.ReasonUnknownQueue, evidence...)
	case then < now && now-then <= (s.RestartCost+s.Wait).Seconds() && !s.Pending:
		return hold(s, tuning.ReasonLongQueue, evidence...)
	}
	return decide(s, tuning.Move, tuning.ReasonAllocation, s.Allotted, evidence...)
}
