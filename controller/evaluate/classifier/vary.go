package classifier

import (
	"context"
	"maps"
	"slices"
	"strings"

	"pitchpipe/controller/profile/counters"
	"pitchpipe/controller/tuning"
)

// variation asks questions that differ from what was learned.
type variation struct {
	name   string
	of     func(b *bench) []exam // each learns and asks on its own
	untold bool                  // which runs are of one kind of job
}

// exam is what is learned, and the profiles that are asked of an execution; none: it
// is not asked about.
type exam struct {
	learn func(execution) bool
	ask   func(execution) []tuning.Profile
}

func variations() []variation {
	return []variation{
		{name: "other cores or threads", of: func(b *bench) []exam { return b.knobsLeftOut(shaped) }},
		{name: "another clock", of: func(b *bench) []exam { return b.knobsLeftOut(clocked) }},
		{name: "the first quarter of the run", of: func(b *bench) []exam { return b.heldOut(firstQuarter) }},
		{name: "one feature missing", of: func(b *bench) []exam { return b.heldOut(withoutOne) }},
		{name: "another set of counters", of: func(b *bench) []exam { return b.heldOut(fromOtherCounters) }},
		{name: "a tenth of the counts from a neighbour", of: func(b *bench) []exam { return b.heldOut(b.polluted(0.1)) }},
		{name: "a third of the counts from a neighbour", of: func(b *bench) []exam { return b.heldOut(b.polluted(1.0 / 3)) }},
		{name: "kinds of jobs not told", untold: true, of: func(b *bench) []exam { return b.heldOut(asItIs) }},
	}
}

// vary asks each variation. Only programs that were learned are asked about.
func (b *bench) vary(ctx context.Context, s *Summary) error {
	s.Variations = []Variation{}
	for _, v := range variations() {
		if err := ctx.Err(); err != nil {
			return err
		}
		b.step(v.name)
		known, right, refused, asked := 0, 0, 0, 0
		for _, c := range v.of(b) {
			l, err := b.fit(c.learn, !v.untold)
			if err != nil {
				return err
			}
			for _, e := range b.all {
				if !l.met[e.workload] {
					continue
				}
				for _, p := range c.ask(e) {
					asked++
					got := l.model.Classify(p)
					switch {
					case got.Known() && l.owner[got.ID] == e.workload:
						right++
						known++
					case got.Known():
						known++
					case notCompared(got.Reason):
						refused++
					}
				}
			}
		}
		if asked == 0 {
			continue // nothing in the data varies so
		}
		s.Variations = append(s.Variations, Variation{
			Name: v.name, Questions: asked,
			Recognised: share(known, asked), Precision: share(right, known), Refused: share(refused, asked),
		})
	}
	return nil
}

func notCompared(r tuning.Reason) bool {
	return r == tuning.ReasonOtherSettings || r == tuning.ReasonSchemaMismatch || r == tuning.ReasonNoModel
}

// heldOut asks about the executions of each fold, changed, when the others were
// learned as they are.
func (b *bench) heldOut(change func(execution) []tuning.Profile) []exam {
	var out []exam
	for fold := range b.folds {
		held := func(e execution) bool { return e.nth%b.folds == fold }
		out = append(out, exam{
			learn: func(e execution) bool { return !held(e) },
			ask: func(e execution) []tuning.Profile {
				if !held(e) {
					return nil
				}
				return change(e)
			},
		})
	}
	return out
}

// knobsLeftOut asks about the executions under each value of a knob when only others
// were learned.
func (b *bench) knobsLeftOut(concerned func(knob string) bool) []exam {
	type value struct {
		knob string
		v    tuning.Value
	}
	seen := map[value]bool{}
	var out []exam
	for _, e := range b.all {
		for _, knob := range slices.Sorted(maps.Keys(e.knobs)) {
			at := value{knob, e.knobs[knob]}
			if !concerned(knob) || seen[at] {
				continue
			}
			seen[at] = true
			out = append(out, exam{
				learn: func(e execution) bool { return e.knobs[at.knob] != at.v },
				ask: func(e execution) []tuning.Profile {
					if e.knobs[at.knob] != at.v {
						return nil
					}
					return asItIs(e)
				},
			})
		}
	}
	return out
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
		if event == counters.Instructions || event == counters.Cycles {
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
		other, ok := b.neighbour(e)
		own := e.total()
		if !ok || own[counters.Instructions] == 0 {
			return nil
		}
		theirs := other.total()
		scale := part / (1 - part) * own[counters.Instructions] / theirs[counters.Instructions]
		mixed := interval{}
		for event, n := range own {
			if m, ok := theirs[event]; ok {
				mixed[event] = n + scale*m
			}
		}
		return []tuning.Profile{e.describe([]interval{mixed})}
	}
}

func (b *bench) neighbour(e execution) (execution, bool) {
	at := slices.IndexFunc(b.all, func(o execution) bool { return o.run == e.run })
	for i := range b.all {
		o := b.all[(at+i)%len(b.all)]
		if o.workload != e.workload && o.machine == e.machine && o.profile.Schema == e.profile.Schema &&
			o.knobs.Equal(e.knobs) && o.total()[counters.Instructions] > 0 {
			return o, true
		}
	}
	return execution{}, false
}
