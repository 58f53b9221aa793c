package models

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// Objectives lists what a setting may cost where it is decided by classes. Cores is the
// geometric mean of seconds and core-seconds.
func Objectives() []string { return []string{"time", "energy", "edp", "cores"} }

// cost is the natural logarithm of what a run cost; false: it failed, or what is
// needed was not measured.
func cost(r evaluate.Row, objective string) (float64, bool) {
	seconds, ok := r.Outcome("seconds")
	joules, measured := r.Outcome("joules")
	cores := cmp.Or(r.Knobs[tuning.Cores].Float(), r.Knobs[tuning.Threads].Float())
	switch objective {
	case "time":
		return math.Log(seconds), ok
	case "cores":
		return math.Log(seconds) + math.Log(cores)/2, ok && cores > 0
	case "edp":
		return math.Log(joules) + math.Log(seconds), ok && measured
	}
	return math.Log(joules), ok && measured
}

// subject is one input of one program on one machine.
type subject struct{ workload, machine, input string }

func (s subject) compare(o subject) int {
	return cmp.Or(cmp.Compare(s.workload, o.workload), cmp.Compare(s.machine, o.machine), cmp.Compare(s.input, o.input))
}

func (e execution) subject() subject { return subject{e.workload, e.machine, e.input} }

// prices are the logarithms of what settings cost a subject, relative to its cheapest.
type prices map[string]float64

// priceAll takes the median over repeats of each subject's settings.
func priceAll(tables []evaluate.Table, objective string) map[subject]prices {
	seen := map[subject]map[string][]float64{}
	for _, t := range tables {
		for _, r := range t.Rows {
			s := subject{r.Workload, r.Machine, r.Input()}
			v, ok := cost(r, objective)
			if !ok {
				continue
			}
			if seen[s] == nil {
				seen[s] = map[string][]float64{}
			}
			seen[s][r.Knobs.Key()] = append(seen[s][r.Knobs.Key()], v)
		}
	}
	out := map[subject]prices{}
	for s, settings := range seen {
		p, least := prices{}, math.Inf(1)
		for key, values := range settings {
			p[key] = float64(evaluate.Median(values))
			least = min(least, p[key])
		}
		for key := range p {
			p[key] -= least
		}
		out[s] = p
	}
	return out
}

// cheapest is the setting that all of them have measured and that costs them least
// together; of equals the first by name. Empty: they have none in common.
func cheapest(all []prices) string {
	best, least := "", math.Inf(1)
	if len(all) == 0 {
		return best
	}
	for _, key := range slices.Sorted(maps.Keys(all[0])) {
		sum, ok := 0.0, true
		for _, p := range all {
			v, has := p[key]
			sum, ok = sum+v, ok && has
		}
		if ok && sum < least {
			best, least = key, sum
		}
	}
	return best
}

// question is what one execution would cost by each rule: logarithms, NaN where it has none.
type question struct {
	workload                string
	class, any, single, own float64
}

// costs leaves each subject out in turn: the classes are learned from all others'
// executions, those of its program's other inputs included, and each of its own is
// classified and gets what is cheapest for the subjects of its class.
func (b *bench) costs(tables []evaluate.Table, objective string) (evaluate.Line, error) {
	if !slices.Contains(Objectives(), objective) {
		return nil, evaluate.Invalid("objective %q: want one of %s", objective, strings.Join(Objectives(), ", "))
	}
	priced := priceAll(tables, objective)
	if len(priced) < 2 {
		return nil, evaluate.Invalid("too little is recorded: the trials have costs of %d programs and inputs; want two, with what %q needs", len(priced), objective)
	}
	var all []question
	settings := 0
	own := map[string][]prices{}
	for _, s := range slices.SortedFunc(maps.Keys(priced), subject.compare) {
		own[s.workload] = append(own[s.workload], priced[s])
		asked, err := b.leaveInputOut(s, priced)
		if err != nil {
			return nil, err
		}
		settings = max(settings, len(priced[s]))
		all = append(all, asked...)
	}
	var kinds []evaluate.Line
	for _, w := range slices.Sorted(maps.Keys(own)) {
		k := costsOf(slices.DeleteFunc(slices.Clone(all), func(q question) bool { return q.workload != w }))
		kinds = append(kinds, evaluate.Line{
			"workload": w, "best": cheapest(own[w]), "recognised": k["recognised"], "class_cost": k["class_cost"], "single_cost": k["single_cost"],
		})
	}
	return costsOf(all).With(evaluate.Line{
		"objective": objective, "inputs": len(priced), "settings": settings, "questions": len(all), "kinds": kinds,
	}), nil
}

func costsOf(all []question) evaluate.Line {
	mean := func(of func(question) float64) evaluate.Figure {
		var logs []float64
		for _, q := range all {
			logs = append(logs, of(q))
		}
		return evaluate.Geometric(logs) // of those that are known
	}
	return evaluate.Line{
		"recognised": evaluate.ShareOf(all, func(q question) bool { return !math.IsNaN(q.class) }),
		"class_cost": mean(func(q question) float64 { return q.class }), "any_cost": mean(func(q question) float64 { return q.any }),
		"single_cost": mean(func(q question) float64 { return q.single }), "own_cost": mean(func(q question) float64 { return q.own }),
	}
}

func (b *bench) leaveInputOut(s subject, priced map[subject]prices) ([]question, error) {
	l, err := b.fit(func(e execution) bool { return e.subject() != s }, true)
	if err != nil {
		return nil, err
	}
	members := map[string]map[subject]bool{}
	for _, e := range b.all {
		if id := l.label[e.run]; id != "" {
			if members[id] == nil {
				members[id] = map[subject]bool{}
			}
			members[id][e.subject()] = true
		}
	}
	pick := func(of func(subject) bool) string {
		var all []prices
		for _, o := range slices.SortedFunc(maps.Keys(priced), subject.compare) {
			if of(o) {
				all = append(all, priced[o])
			}
		}
		return cheapest(all)
	}
	single := pick(func(o subject) bool { return o != s && o.machine == s.machine })
	at := func(setting string) float64 {
		if v, ok := priced[s][setting]; ok {
			return v
		}
		return math.NaN()
	}
	var out []question
	for _, e := range b.all {
		if e.subject() != s || math.IsNaN(at(single)) {
			continue
		}
		q := question{workload: s.workload, class: math.NaN(), single: at(single), own: at(e.knobs.Key())}
		if c := l.model.Classify(e.profile); c.Known() {
			q.class = at(pick(func(o subject) bool { return members[c.ID][o] }))
		}
		if q.any = q.class; math.IsNaN(q.any) {
			q.any = q.single
		}
		out = append(out, q)
	}
	return out, nil
}
