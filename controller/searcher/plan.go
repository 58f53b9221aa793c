package searcher

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"pitchpipe/controller/search/propose"
	"pitchpipe/controller/tuning"
)

// ErrPolicy means that a stanza describes no search.
var ErrPolicy = errors.New("no search")

// Of the settings that may be tried there are some for each trial, so that a model has a choice, and a bounded
// number, so that it has an answer at once. A search of more trials than that gets one for each, within reason.
const (
	perTrial             = 8
	fewest, mostSettings = 256, 1024
	mostTrials           = 8192
)

// PlanOf is the search that a stanza asks for.
func PlanOf(p tuning.Policy) (Plan, error) {
	if p.Search == nil {
		return Plan{}, ErrPolicy
	}
	out := Plan{
		Search: *p.Search, Minimize: p.Quality == nil || p.Quality.Direction == "min",
		Objective: p.Objective, Weight: &p.Weight, Total: p.Progress.Total, Resumes: p.Checkpoint != nil,
	}
	if p.Quality != nil {
		out.Target = p.Quality.Target
	}
	out.Epochs = cmp.Or(out.Epochs, out.Total)
	if out.Epochs == 0 && out.Method == tuning.Hyperband {
		return Plan{}, fmt.Errorf("%w: hyperband plans its brackets before the first trial: want epochs in the search block", ErrPolicy)
	}
	knobs := p.Searched()
	most := max(mostSettings, min(out.Search.Trials, mostTrials))
	out.Settings = Candidates(knobs, min(max(perTrial*out.Search.Trials, fewest), most), out.Seed)
	if out.Method == tuning.Grid {
		out.Settings = Grid(knobs, out.Search.Trials)
	}
	out.Search.Trials = min(out.Search.Trials, len(out.Settings)) // rungs and limits count those that begin
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
		known = append(known, propose.Past{Losses: scores, Settings: tuning.Each(at, func(i int) tuning.Settings { return s.Settings[i] })})
	}
	var err error
	p.History, err = propose.Of(p.Settings).Recall(known)
	return err
}

// Candidates are at most n settings of the knobs, the same for the same seed: the full grid where it has
// no more points, else random ones. A knob whose condition does not hold is left out.
func Candidates(knobs []tuning.Knob, n int, seed uint64) []tuning.Settings {
	if !slices.ContainsFunc(knobs, func(k tuning.Knob) bool { return len(k.Values) == 0 }) && product(knobs, 0) <= n {
		return combine(knobs, 0)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	var out []tuning.Settings
	seen := map[string]bool{}
	for range 4 * n { // of a space of words many draws are alike
		s := tuning.Settings{}
		for _, k := range knobs {
			s[k.Name] = draw(k, rng.Float64())
		}
		s = active(knobs, s)
		if seen[s.Key()] {
			continue
		}
		seen[s.Key()] = true
		if out = append(out, s); len(out) == n {
			break
		}
	}
	return out
}

// Grid is every combination of the knobs' values, with so many values of a range that it has at most n
// points and two at least.
func Grid(knobs []tuning.Knob, n int) []tuning.Settings {
	steps := 2
	for product(knobs, steps+1) <= n && product(knobs, steps+1) > product(knobs, steps) {
		steps++
	}
	return combine(knobs, steps)
}

func product(knobs []tuning.Knob, steps int) int {
	out := 1
	for _, k := range knobs {
		if out *= max(len(k.Candidates(steps)), 1); out > math.MaxInt32 {
			return math.MaxInt32
		}
	}
	return out
}

func combine(knobs []tuning.Knob, steps int) []tuning.Settings {
	out := []tuning.Settings{{}}
	for _, k := range knobs {
		var next []tuning.Settings
		for _, s := range out {
			for _, v := range k.Candidates(steps) {
				next = append(next, s.With(k.Name, v))
			}
		}
		out = next
	}
	seen := map[string]bool{}
	var distinct []tuning.Settings
	for _, s := range out {
		if s = active(knobs, s); !seen[s.Key()] {
			seen[s.Key()] = true
			distinct = append(distinct, s)
		}
	}
	return distinct
}

// active drops the knobs whose conditions do not hold. A condition on a knob that is dropped never holds.
func active(knobs []tuning.Knob, s tuning.Settings) tuning.Settings {
	for dropped := true; dropped; {
		dropped = false
		for _, k := range knobs {
			if s[k.Name].IsSet() && !k.When.Holds(s) {
				s, dropped = s.Clone(), true
				delete(s, k.Name)
			}
		}
	}
	return s
}

// draw is the value at a share of the way from the least to the greatest one, in three digits.
func draw(k tuning.Knob, u float64) tuning.Value {
	if len(k.Values) > 0 || k.Scale == tuning.Pow2 {
		all := k.Candidates(math.MaxInt)
		return all[min(int(u*float64(len(all))), len(all)-1)]
	}
	lo, hi := k.Min.Float(), k.Max.Float()
	v := lo + u*(hi-lo)
	if k.Scale == tuning.Log {
		v = lo * math.Pow(hi/lo, u)
	}
	if tuning.IsSystem(k.Name) {
		return tuning.Number(min(max(math.Round(v), lo), hi))
	}
	if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 3, 64), 64); err == nil {
		v = short
	}
	return tuning.Number(min(max(v, lo), hi))
}
