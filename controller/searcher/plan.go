package searcher

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// ErrPolicy means that a stanza describes no search.
var ErrPolicy = errors.New("no search")

// Of the settings that may be tried there are some for each trial, so that a model has a choice, and a bounded
// number, so that it has an answer at once.
const (
	perTrial             = 8
	fewest, mostSettings = 256, 1024
)

// PlanOf is the search that a stanza asks for.
func PlanOf(p tuning.Policy) (Plan, error) {
	if p.Search == nil {
		return Plan{}, ErrPolicy
	}
	out := Plan{
		Search: *p.Search, Minimize: p.Quality == nil || p.Quality.Direction == "min",
		Objective: p.Objective, Total: p.Progress.Total, Resumes: p.Checkpoint != nil,
	}
	if p.Quality != nil {
		out.Target = p.Quality.Target
	}
	out.Epochs = cmp.Or(out.Epochs, out.Total)
	if out.Epochs == 0 && out.Method == tuning.Hyperband {
		return Plan{}, fmt.Errorf("%w: hyperband plans its brackets before the first trial: want epochs in the search block", ErrPolicy)
	}
	knobs := p.Searched()
	out.Settings = Candidates(knobs, min(max(perTrial*out.Search.Trials, fewest), mostSettings), out.Seed)
	if out.Method == tuning.Grid {
		out.Settings = Grid(knobs, out.Search.Trials)
	}
	return out, nil
}

// Warm gives the plan what earlier searches of the same job let expect. Searches of other knobs, or of another
// measure, say nothing.
func (p *Plan) Warm(past []*Searcher) error {
	if p.Method != tuning.GP && p.Method != tuning.ASHAGP {
		return nil
	}
	var known []propose.Past
	for _, s := range past {
		at, scores := propose.Scores(s.tries) // how good its trials were among each other
		if len(at) == 0 || s.Minimize != p.Minimize || !slices.Equal(tuning.Knobs(p.Settings), tuning.Knobs(s.Settings)) {
			continue
		}
		one := propose.Past{Losses: scores}
		for _, i := range at {
			one.Settings = append(one.Settings, s.Settings[i])
		}
		known = append(known, one)
	}
	var err error
	p.History, err = propose.Of(p.Settings).Recall(known)
	return err
}
