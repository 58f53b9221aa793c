package tuning

import (
	"fmt"
	"slices"
)

// Reach is what a scheduler can bring to a job.
type Reach struct {
	Scheduler string
	Env       bool   // other environment variables
	Args      bool   // other command-line arguments
	Live      bool   // the settings file
	Memory    bool   // less memory: a kill for too little of it can be made good
	Lacks     Rule   // what it would need for Env and Live; zero = nothing helps
	Observed  string // why it changes nothing of this job; empty = it does
	Stays     string // why it does not restart this job; empty = it may
	Whole     string // why the number of its cores stays; empty = it may change
}

// Carried is the policy without the knobs that a scheduler cannot bring to a job in every way that
// the stanza names.
func (p Policy) Carried(r Reach) Policy {
	out := p
	out.Knobs, out.Limits = nil, slices.Clone(p.Limits)
	for _, k := range p.Knobs {
		why, rule := "", Rule{Name: "driver", Value: r.Scheduler}
		switch {
		case k.Env != "" && !r.Env:
			why, rule = fmt.Sprintf("%s cannot change the variable %s of a job", r.Scheduler, k.Env), r.missing(rule)
		case k.Arg != "" && !r.Args:
			why = fmt.Sprintf("%s cannot change the argument %s of a job", r.Scheduler, k.Arg)
		case k.Live && !r.Live:
			why, rule = r.Scheduler+" gives a job no settings file", r.missing(rule)
		case k.Name == Cores && r.Whole != "":
			why = r.Whole
		case k.Name == Memory && !r.Memory:
			why = "a job that is killed for too little memory has ended under " + r.Scheduler + ", so its memory is never lowered"
		default:
			out.Knobs = append(out.Knobs, k)
			continue
		}
		out.Limits = append(out.Limits, Limit{Knob: k.Name, Why: why, Rule: rule})
	}
	return out
}

func (r Reach) missing(otherwise Rule) Rule {
	if r.Lacks.Name == "" {
		return otherwise
	}
	return r.Lacks
}
