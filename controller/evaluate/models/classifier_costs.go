package models

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// Objectives lists what a setting may cost where it is decided by classes. Cores is the
// geometric mean of seconds and core-seconds.
func Objectives() []string { return []string{"time", "energy", "edp", "cores"} }

// cost is the natural logarithm of what a run cost, +Inf where it failed, or what is
// needed was not measured.
func cost(r evaluate.Row, objective string) float64 {
	seconds, _ := r.Outcome("seconds")
	joules, _ := r.Outcome("joules")
	if objective == "cores" {
		cores := cmp.Or(r.Knobs[tuning.Cores].Float(), r.Knobs[tuning.Threads].Float())
		return tuning.LogOf(seconds) + tuning.LogOf(cores)/2
	}
	return tuning.Measure{Objective: tuning.Objective(objective)}.Log(tuning.Spent{Seconds: seconds, Joules: joules})
}

// subject names one input of one program on one machine.
func subject(r evaluate.Row) [3]string { return [3]string{r.Workload, r.Machine, r.Input()} }

// priced is a subject, by one of its rows, and the logarithms of what settings cost it,
// relative to its cheapest.
type priced struct {
	evaluate.Row
	costs map[string]float64
}

// at is what a setting costs, NaN where it was not measured.
func (p priced) at(setting string) float64 {
	if v, ok := p.costs[setting]; ok {
		return v
	}
	return math.NaN()
}

// priceAll takes the median over repeats of each subject's settings. Subjects are sorted.
func priceAll(tables []evaluate.Table, objective string) []priced {
	rows := slices.Concat(tuning.Each(tables, func(t evaluate.Table) []evaluate.Row { return t.Rows })...)
	rows = evaluate.Only(rows, func(r evaluate.Row) bool { return !math.IsInf(cost(r, objective), 1) })
	var out []priced
	for _, its := range evaluate.Split(rows, subject) {
		p := priced{its[0], map[string]float64{}}
		for _, same := range evaluate.Split(its, evaluate.Setting) {
			costs := tuning.Each(same, func(r evaluate.Row) float64 { return cost(r, objective) })
			p.costs[evaluate.Setting(same[0])] = float64(evaluate.Median(costs))
		}
		least := slices.Min(slices.Collect(maps.Values(p.costs)))
		for key := range p.costs {
			p.costs[key] -= least
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b priced) int {
		x, y := subject(a.Row), subject(b.Row)
		return slices.Compare(x[:], y[:])
	})
	return out
}

// cheapestOf is the setting that is cheapest for subjects together. Empty: they have none
// in common.
func cheapestOf(all []priced) string {
	return cheapest(all, func(p priced) []string { return slices.Sorted(maps.Keys(p.costs)) }, priced.at)
}

// costs leaves each subject out in turn: the classes are learned from the executions of
// all others, also of its program's other inputs. Each of its own executions is classified
// and gets what is cheapest for the subjects of its class.
func (b *bench) costs(tables []evaluate.Table, objective string) (evaluate.Line, error) {
	subjects := priceAll(tables, objective)
	if len(subjects) < 2 {
		return nil, evaluate.Invalid("too little is recorded: the trials have costs of %d programs and inputs; want two, with what %q needs", len(subjects), objective)
	}
	var all, kinds []evaluate.Line
	settings := 0
	for _, own := range evaluate.Split(subjects, func(p priced) string { return p.Workload }) {
		var asked []evaluate.Line
		for _, s := range own {
			more, err := b.leaveInputOut(s, subjects)
			if err != nil {
				return nil, err
			}
			settings, asked = max(settings, len(s.costs)), append(asked, more...)
		}
		k := costsOf(asked)
		kinds = append(kinds, evaluate.Line{
			"workload": own[0].Workload, "best": cheapestOf(own), "recognised": k["recognised"], "class_cost": k["class_cost"], "single_cost": k["single_cost"],
		})
		all = append(all, asked...)
	}
	return costsOf(all).With(evaluate.Line{
		"objective": objective, "inputs": len(subjects), "settings": settings, "questions": len(all), "kinds": kinds,
	}), nil
}

// costsOf has the means over questions; see leaveInputOut.
func costsOf(questions []evaluate.Line) evaluate.Line {
	out := evaluate.Line{"recognised": evaluate.ShareOf(questions, func(q evaluate.Line) bool { return q.Figure("class_cost").Known() })}
	for _, key := range []string{"class_cost", "any_cost", "single_cost", "own_cost"} {
		out[key] = evaluate.Geometric(evaluate.Column(questions, key)) // of those that are known
	}
	return out
}

// leaveInputOut has for each execution of a subject the logarithm of what it would cost by
// each rule, unknown where that has no setting for it.
func (b *bench) leaveInputOut(s priced, all []priced) ([]evaluate.Line, error) {
	isOwn := func(r evaluate.Row) bool { return subject(r) == subject(s.Row) }
	l, err := b.fit(func(e execution) bool { return !isOwn(e.Row) }, true)
	if err != nil {
		return nil, err
	}
	single := s.at(cheapestOf(evaluate.Only(all, func(o priced) bool { return !isOwn(o.Row) && o.Machine == s.Machine })))
	var out []evaluate.Line
	for _, e := range b.all {
		if !isOwn(e.Row) || math.IsNaN(single) {
			continue
		}
		class, known := math.NaN(), single
		if c := l.model.Classify(e.profile); c.Known() {
			class = s.at(cheapestOf(evaluate.Only(all, func(o priced) bool {
				return slices.ContainsFunc(b.all, func(m execution) bool { return l.label[m.Run] == c.ID && subject(m.Row) == subject(o.Row) })
			})))
		}
		if !math.IsNaN(class) {
			known = class
		}
		out = append(out, evaluate.Line{
			"class_cost": evaluate.Figure(class), "any_cost": evaluate.Figure(known),
			"single_cost": evaluate.Figure(single), "own_cost": evaluate.Figure(s.at(e.Knobs.Key())),
		})
	}
	return out, nil
}
