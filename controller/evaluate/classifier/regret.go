package classifier

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"pitchpipe/controller/evaluate/records"
	"pitchpipe/controller/tuning"
)

// The objectives of the regret.
const (
	ObjectiveTime   = "time"   // seconds
	ObjectiveEnergy = "energy" // joules
	ObjectiveEDP    = "edp"    // joules × seconds
	ObjectiveCores  = "cores"  // geometric mean of seconds and core-seconds

	DefaultObjective = ObjectiveCores
)

// ErrObjective means that there is no such objective.
var ErrObjective = errors.New("no such objective")

// cost is the natural logarithm of what a run cost; false: it failed, or what is
// needed was not measured.
func cost(r records.Row, objective string) (float64, bool) {
	seconds, ok := r.Outcome("seconds")
	if !ok {
		return 0, false
	}
	switch objective {
	case ObjectiveTime:
		return math.Log(seconds), true
	case ObjectiveCores:
		cores := cmp.Or(r.Knobs[tuning.Cores].Float(), r.Knobs[tuning.Threads].Float())
		return math.Log(seconds) + math.Log(cores)/2, cores > 0
	}
	joules, ok := r.Outcome("joules")
	if !ok {
		return 0, false
	}
	if objective == ObjectiveEDP {
		return math.Log(joules) + math.Log(seconds), true
	}
	return math.Log(joules), true
}

// subject is one input of one program on one machine.
type subject struct {
	workload, machine string
	input             string
}

func (s subject) compare(o subject) int {
	return cmp.Or(cmp.Compare(s.workload, o.workload), cmp.Compare(s.machine, o.machine), cmp.Compare(s.input, o.input))
}

// prices are the logarithms of what settings cost a subject, relative to its cheapest.
type prices map[string]float64

// priceAll takes the median over repeats of each subject's settings.
func priceAll(tables []records.Table, objective string) map[subject]prices {
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
			p[key] = middle(values)
			least = min(least, p[key])
		}
		for key := range p {
			p[key] -= least
		}
		out[s] = p
	}
	return out
}

func middle(v []float64) float64 {
	slices.Sort(v)
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
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

// regret leaves each subject out in turn: the classes are learned from all others'
// executions, those of its program's other inputs included, and each of its own is
// classified and gets what is cheapest for the subjects of its class.
func (b *bench) regret(tables []records.Table, objective string) (*Regret, error) {
	if objective == "" {
		objective = DefaultObjective
	}
	if !slices.Contains([]string{ObjectiveTime, ObjectiveEnergy, ObjectiveEDP, ObjectiveCores}, objective) {
		return nil, fmt.Errorf("%w: %q: want time, energy, edp or cores", ErrObjective, objective)
	}
	priced := priceAll(tables, objective)
	if len(priced) < 2 {
		return nil, fmt.Errorf("%w: the trials tell what settings cost of %d programs and inputs; want two, with what %q needs", ErrTooLittle, len(priced), objective)
	}
	out := &Regret{Objective: objective, Kinds: []Kind{}}
	var total regrets
	kinds := map[string]*regrets{}
	for _, s := range slices.SortedFunc(maps.Keys(priced), subject.compare) {
		own := priced[s]
		if kinds[s.workload] == nil {
			kinds[s.workload] = &regrets{}
		}
		kinds[s.workload].prices = append(kinds[s.workload].prices, own)
		one, err := b.leaveInputOut(s, priced)
		if err != nil {
			return nil, err
		}
		out.Inputs++
		out.Settings = max(out.Settings, len(own))
		total.add(one)
		kinds[s.workload].add(one)
	}
	out.Questions = total.asked
	out.Recognised, out.ClassCost, out.AnyCost = share(len(total.class), total.asked), geometric(total.class), geometric(total.any)
	out.SingleCost, out.OwnCost = geometric(total.single), geometric(total.own)
	for _, w := range slices.Sorted(maps.Keys(kinds)) {
		k := kinds[w]
		out.Kinds = append(out.Kinds, Kind{
			Workload: w, Best: cheapest(k.prices), Recognised: share(len(k.class), k.asked),
			ClassCost: geometric(k.class), SingleCost: geometric(k.single),
		})
	}
	return out, nil
}

// regrets are logarithms of costs, one for each execution asked about.
type regrets struct {
	asked                   int
	class, any, single, own []float64
	prices                  []prices
}

func (r *regrets) add(o regrets) {
	r.asked += o.asked
	r.class = append(r.class, o.class...)
	r.any = append(r.any, o.any...)
	r.single = append(r.single, o.single...)
	r.own = append(r.own, o.own...)
}

func (b *bench) leaveInputOut(s subject, priced map[subject]prices) (regrets, error) {
	of := func(e execution) subject { return subject{e.workload, e.machine, e.input} }
	l, err := b.fit(func(e execution) bool { return of(e) != s }, true)
	if err != nil {
		return regrets{}, err
	}
	members := map[string]map[subject]bool{}
	var others []prices
	for _, o := range slices.SortedFunc(maps.Keys(priced), subject.compare) {
		if o != s && o.machine == s.machine {
			others = append(others, priced[o])
		}
	}
	for _, e := range b.all {
		if id := l.label[e.run]; id != "" {
			if members[id] == nil {
				members[id] = map[subject]bool{}
			}
			members[id][of(e)] = true
		}
	}
	single := cheapest(others)
	var out regrets
	for _, e := range b.all {
		single, ok := priced[s][single]
		if of(e) != s || !ok {
			continue
		}
		out.asked++
		out.single = append(out.single, single)
		if v, ok := priced[s][e.knobs.Key()]; ok {
			out.own = append(out.own, v)
		}
		chosen := single
		if c := l.model.Classify(e.profile); c.Known() {
			var alike []prices
			for _, m := range slices.SortedFunc(maps.Keys(members[c.ID]), subject.compare) {
				if p, ok := priced[m]; ok {
					alike = append(alike, p)
				}
			}
			if v, ok := priced[s][cheapest(alike)]; ok {
				chosen = v
				out.class = append(out.class, v)
			}
		}
		out.any = append(out.any, chosen)
	}
	return out, nil
}

// geometric is the geometric mean of what logarithms stand for.
func geometric(logs []float64) *float64 {
	m := mean(logs)
	if m != nil {
		*m = math.Exp(*m)
	}
	return m
}
