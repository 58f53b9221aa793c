package tuning

// Offer is an action that a job offers to take between two epochs.
type Offer struct {
	Name    string `json:"name"`
	Max     int    `json:"max"`               // how often one run can take it; 0: at each decision
	Explore int    `json:"explore,omitempty"` // how many runs of the kind may take it before any showed what it brings
}

// Taken is an action that a run took.
type Taken struct {
	Name string  `json:"name"`
	Left float64 `json:"left"` // epochs left then, the one that began with it included
}

// Adapted is how far a run came that could take actions.
type Adapted struct {
	Taken   []Taken  `json:"taken,omitempty"`   // none: it went on undisturbed
	Quality *float64 `json:"quality,omitempty"` // mean of its last three epochs; nil: it has not ended well, or did not show it
}

// Adaptation asks for a decision about the actions of a running job.
type Adaptation struct {
	Taken []Taken   `json:"taken,omitempty"`
	Past  []Adapted `json:"past,omitempty"` // runs of its kind that could take them, those under way included
	Mute  bool      `json:"mute,omitempty"` // the scheduler cannot hand an action to a running job
}

// MayAdapt is why a running job must not be handed an action; ReasonNone: it may.
func (s State) MayAdapt() Reason {
	switch {
	case s.Gate != ReasonNone:
		return s.Gate
	case s.Policy.Mode == Observe:
		return ReasonObserveMode
	case s.Policy.Mode != Apply:
		return ReasonRecommend
	case s.Site.DryRun:
		return ReasonDryRun
	case s.Adaptation.Mute:
		return ReasonUnsupported
	}
	return ReasonNone
}

// Times counts an action.
func Times(taken []Taken, name string) int {
	return Counts(taken)[name].Int()
}

// Names are the actions in order.
func Names(taken []Taken) []string {
	return Each(taken, func(t Taken) string { return t.Name })
}

// Counts are how often each action was taken, as the settings file says it.
func Counts(taken []Taken) Settings {
	out := Settings{}
	for _, t := range taken {
		out[t.Name] = Number(out[t.Name].Float() + 1)
	}
	return out
}
