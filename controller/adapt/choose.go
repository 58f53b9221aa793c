package adapt

import (
	"slices"

	"pitchpipe/controller/tuning"
)

// Question is what is to be decided at an epoch boundary.
type Question struct {
	Kind      string
	Taken     []tuning.Taken // so far
	Offered   []tuning.Offer
	Left      float64 // epochs left, the one that begins now included
	Decisions int     // how often the job can still be asked, this time included
	// Throughout says that a job that once acted is changed at each further decision, be it by an
	// action that is named for doing nothing: that is how some programs take theirs.
	Throughout bool
}

// Choice is what to do now.
type Choice struct {
	Action string   // empty: nothing
	Plan   []string // the action and those expected after it
	Gain   float64  // expected of the plan over no further action, a share of the undisturbed quality
	SD     float64  // of the gain, without the noise of runs
}

// What the choice relies on.
const (
	// sure is how many standard deviations an expected gain must be above nothing: two times of three
	// it is one. The difference between single runs is luck, not a reason for or against an action.
	sure = 0.5
	// ahead is how many decisions are planned together: all sequences of that length are compared.
	ahead = 3
)

// Choose picks the first of those further actions that are expected to gain most, if these are
// expected to gain anything for sure.
func (m *Model) Choose(q Question) Choice {
	var best Choice
	var plan []tuning.Taken
	var grow func()
	grow = func() {
		whole := len(plan) == min(q.Decisions, ahead)
		if len(plan) > 0 && (whole || !q.Throughout) {
			gain, sd := m.Expect(q.Kind, slices.Concat(q.Taken, plan), q.Taken)
			forced := q.Throughout && len(q.Taken) > 0
			if (forced || gain > sure*sd) && (best.Plan == nil || gain > best.Gain) {
				best = Choice{Action: plan[0].Name, Plan: tuning.Names(plan), Gain: gain, SD: sd}
			}
		}
		if whole || q.Left-float64(len(plan)) < 1 {
			return
		}
		for _, o := range q.Offered {
			if o.Max > 0 && tuning.Times(q.Taken, o.Name)+tuning.Times(plan, o.Name) >= o.Max {
				continue
			}
			plan = append(plan, tuning.Taken{Name: o.Name, Left: q.Left - float64(len(plan))})
			grow()
			plan = plan[:len(plan)-1]
		}
	}
	grow()
	return best
}
