package models

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

// variation asks questions that differ from what was learned.
type variation struct {
	name    string
	exams   []exam
	unnamed bool // which runs are of one kind of job is left out
}

// exam holds executions out of what is learned, and asks about profiles of each.
type exam struct {
	held func(execution) bool
	ask  func(execution) []tuning.Profile
}

func (b *bench) variations() []variation {
	return []variation{
		{name: "other cores or threads", exams: b.byKnob(shaped)},
		{name: "another clock", exams: b.byKnob(clocked)},
		{name: "the first quarter of the run", exams: b.byFold(firstQuarter)},
		{name: "one feature missing", exams: b.byFold(withoutOne)},
		{name: "another set of counters", exams: b.byFold(fromOtherCounters)},
		{name: "a tenth of the counts from a neighbour", exams: b.byFold(b.polluted(0.1))},
		{name: "a third of the counts from a neighbour", exams: b.byFold(b.polluted(1.0 / 3))},
		{name: "kinds of jobs not told", unnamed: true, exams: b.byFold(asItIs)},
	}
}

// vary asks each variation. Only programs that were learned are asked about.
func (b *bench) vary(ctx context.Context) ([]evaluate.Line, error) {
	var out []evaluate.Line
	for _, v := range b.variations() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.step(v.name)
		var all []answer
		for _, x := range v.exams {
			l, err := b.fit(func(e execution) bool { return !x.held(e) }, !v.unnamed)
			if err != nil {
				return nil, err
			}
			for _, e := range b.all {
				if !l.met[e.Workload] || !x.held(e) {
					continue
				}
				all = append(all, tuning.Each(x.ask(e), func(p tuning.Profile) answer { return l.question(p, e.Workload) })...)
			}
		}
		if len(all) == 0 {
			continue // nothing in the data varies so
		}
		out = append(out, shares(all).With(evaluate.Line{
			"name": v.name, "questions": len(all), "refused": evaluate.ShareOf(all, func(a answer) bool { return a.refused }),
		}))
	}
	return out, nil
}

func (b *bench) byFold(ask func(execution) []tuning.Profile) []exam {
	var out []exam
	for fold := range b.folds {
		out = append(out, exam{func(e execution) bool { return e.nth%b.folds == fold }, ask})
	}
	return out
}

func (b *bench) byKnob(concerned func(knob string) bool) []exam {
	type value struct {
		knob string
		v    tuning.Value
	}
	var all []value
	for _, e := range b.all {
		for _, knob := range evaluate.Only(slices.Sorted(maps.Keys(e.Knobs)), concerned) {
			all = append(all, value{knob, e.Knobs[knob]})
		}
	}
	return tuning.Each(evaluate.Split(all, func(at value) value { return at }), func(same []value) exam {
		return exam{func(e execution) bool { return e.Knobs[same[0].knob] == same[0].v }, asItIs}
	})
}

func shaped(knob string) bool { return knob == tuning.Cores || knob == tuning.Threads }

func clocked(knob string) bool {
	return strings.Contains(knob, "frequency") || strings.Contains(knob, "clock") || strings.HasSuffix(knob, "mhz")
}

func asItIs(e execution) []tuning.Profile { return []tuning.Profile{e.profile} }

func firstQuarter(e execution) []tuning.Profile {
	return []tuning.Profile{e.describe(e.intervals[:max(1, len(e.intervals)/4)])}
}

// withoutOne takes away each feature in turn: a counter that was asked for and did
// not run.
func withoutOne(e execution) []tuning.Profile {
	var out []tuning.Profile
	for _, f := range slices.Sorted(maps.Keys(e.profile.Features)) {
		p := e.profile
		p.Features = maps.Clone(p.Features)
		delete(p.Features, f)
		out = append(out, p)
	}
	return out
}

// fromOtherCounters are the profiles that a machine would make whose set of events
// lacks one.
func fromOtherCounters(e execution) []tuning.Profile {
	if !e.hardware() {
		return nil
	}
	var out []tuning.Profile
	for i, event := range e.events {
		if event == eventInstructions || event == eventCycles {
			continue
		}
		changed := e
		changed.events = slices.Delete(slices.Clone(e.events), i, i+1)
		out = append(out, changed.describe(e.intervals))
	}
	return out
}

// polluted adds to the counts of an execution those of the next program that ran in
// the same shape, so that they are the given share of the instructions: what counting
// a whole node gives where two jobs share it.
func (b *bench) polluted(part float64) func(execution) []tuning.Profile {
	return func(e execution) []tuning.Profile {
		own := e.sum(e.intervals)
		at := slices.IndexFunc(b.all, func(o execution) bool { return o.Run == e.Run })
		for i := range b.all {
			o := b.all[(at+i)%len(b.all)]
			if o.Workload == e.Workload || o.Machine != e.Machine || o.profile.Schema != e.profile.Schema || !o.Knobs.Equal(e.Knobs) {
				continue
			}
			theirs := o.sum(o.intervals)
			if theirs[eventInstructions] == 0 || own[eventInstructions] == 0 {
				continue
			}
			scale := part / (1 - part) * own[eventInstructions] / theirs[eventInstructions]
			var mixed evaluate.Row
			for event, n := range own {
				if m, ok := theirs[event]; ok {
					mixed.Set(event, n+scale*m)
				}
			}
			return []tuning.Profile{e.describe([]evaluate.Row{mixed})}
		}
		return nil
	}
}

// stability learns from random four fifths of the executions and compares the classes
// of those with the classes of all.
func (b *bench) stability(ctx context.Context, resamples int) (evaluate.Line, error) {
	whole, err := b.fit(func(execution) bool { return true }, true)
	if err != nil {
		return nil, err
	}
	var indices []float64
	for i := range resamples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		b.step(fmt.Sprintf("resample %d", i+1))
		rng := rand.New(rand.NewPCG(b.seed, uint64(1000+i))) //nolint:gosec // an index
		chosen := map[string]bool{}
		for _, at := range rng.Perm(len(b.all))[:len(b.all)*4/5] {
			chosen[b.all[at].Run] = true
		}
		part, err := b.fit(func(e execution) bool { return chosen[e.Run] }, true)
		if err != nil {
			return nil, err
		}
		indices = append(indices, adjustedRand(whole.label, part.label))
	}
	return evaluate.Line{"k": whole.k, "strata": whole.strata, "resamples": resamples, "stability": evaluate.Mean(indices)}, nil
}

// adjustedRand compares two partitions of the things that both know (Hubert and
// Arabie, 1985): 1 where they are the same, 0 where they agree as chance would.
func adjustedRand(a, b map[string]string) float64 {
	both, inA, inB, n := map[[2]string]int{}, map[string]int{}, map[string]int{}, 0
	for thing, x := range a {
		y, ok := b[thing]
		if !ok {
			continue
		}
		both[[2]string{x, y}]++
		inA[x]++
		inB[y]++
		n++
	}
	index, left, right, all := pairs(both), pairs(inA), pairs(inB), float64(n)*float64(n-1)/2
	if all == 0 {
		return 1
	}
	expected := left * right / all
	if top := (left + right) / 2; top != expected {
		return (index - expected) / (top - expected)
	}
	return 1
}

func pairs[K comparable](counts map[K]int) float64 {
	sum := 0.0
	for _, n := range counts {
		sum += float64(n) * float64(n-1) / 2
	}
	return sum
}
