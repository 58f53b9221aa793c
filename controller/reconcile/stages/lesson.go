package stages

import (
	"fmt"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
)

// Observation is what is kept of a lesson, without the machine that taught it.
func Observation(l reconcile.Lesson) knowledge.Observation {
	o := knowledge.Observation{
		ID: fmt.Sprintf("%s@%d", l.Job, l.Submitted.Unix()), Job: l.Job, Submitted: l.Submitted, Kind: l.Kind, User: l.Owner, At: l.At, Profiles: l.Profiles, Peak: l.Peak,
		Trials: l.Trials, Outcome: l.Outcome, Regressed: l.Regressed, RestartCosts: l.RestartCost,
		Polluted: l.Polluted, Began: l.Began, Trying: l.Trying, Epochs: l.Epochs, End: l.End, Reached: l.Reached, Curve: l.Curve, Toll: l.Toll,
	}
	if f := l.Final; f != nil {
		o.Final = &knowledge.Final{Settings: f.Settings, Epochs: f.Epochs, Quality: f.Quality}
	}
	return o
}
