package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/controller/verify"
)

// Pair is a tuned and an untuned job that did the same amount of work, and the evidence
// that they give; see Match for what the tuned job is charged.
type Pair struct {
	Tuned, Untuned Row
	Evidence       verify.Pair
}

// Saving is what tuning brought to jobs of one kind, or to all that are tuned for
// one objective.
type Saving struct {
	Kind      string           `json:"kind,omitempty"` // empty: all kinds
	Objective tuning.Objective `json:"objective"`
	Weight    float64          `json:"weight,omitempty"`    // share of energy in tuning.Blend
	Epochs    int              `json:"epochs,omitempty"`    // that each job of the kind did
	Own       string           `json:"requested,omitempty"` // settings that each owner asked for
	Tuned     int              `json:"tuned"`               // ended jobs that could be paired
	Untuned   int              `json:"untuned"`
	Pairs     int              `json:"pairs"`
	Outcome   *tuning.Outcome  `json:"outcome"`        // null: there was nothing to compare
	Note      string           `json:"note,omitempty"` // why not
	// Jobs that were begun alike and did not finish all their epochs: these are not
	// compared, so more of them on one side would flatter it.
	TunedUnfinished   int `json:"tuned_unfinished"`
	UntunedUnfinished int `json:"untuned_unfinished"`
}

// NoUntuned is the note where nothing can be said without an untuned job.
const NoUntuned = "no untuned job to compare with"

// stratum holds jobs that may be paired.
type stratum struct {
	kind      tuning.JobKind
	objective tuning.Objective
	weight    float64
	epochs    int
	own       string // key of the settings that the owner asked for
}

func (s stratum) compare(o stratum) int {
	return cmp.Or(
		strings.Compare(string(s.objective), string(o.objective)), cmp.Compare(s.weight, o.weight),
		strings.Compare(s.kind.String(), o.kind.String()), cmp.Compare(s.epochs, o.epochs), strings.Compare(s.own, o.own),
	)
}

func (r Row) stratum() stratum {
	s := stratum{kind: r.Kind, objective: r.Policy.Objective, epochs: r.Total, own: r.Own.Key()}
	if s.objective == tuning.Blend {
		s.weight = r.Policy.Weight
	}
	return s
}

// takesPart reports whether the job is on one of the two sides: tuned, or drawn to stay
// untuned. Others, such as jobs that their owner switched off, chose not to be tuned and show
// nothing. Trials that share cores are no comparison: what one leaves makes others sooner.
func (r Row) takesPart() bool {
	return !r.Forgotten && r.Control != r.Tuned && r.Policy.Mode == tuning.Apply && r.Policy.Measure().Objective != tuning.SearchTime
}

func (r Row) finished() bool { return r.Succeeded && r.Total > 0 && tuning.Done(r.Epochs) >= r.Total }

// Match pairs jobs that did the same work. Both have ended, with success and all
// their epochs; one is tuned (an attempt ran under other settings than its
// owner's), the other was drawn at random to stay untuned. Both are of the same
// kind, for the same objective, of the same number of epochs, and their owner
// asked for the same settings. Inputs may differ: the kind leaves them out.
//
// The jobs are taken in the order in which they ended. Each is paired with the
// job of the other side that ended last before it and is still free; if there is
// none it waits. So each job is used at most once, pairs are near in time, and a
// pair never changes when later jobs end, as an interval needs that holds
// whenever it is looked at.
//
// The tuned job is charged what tuning cost it beyond the compared epochs: the
// time between the last epoch of an attempt and the beginning of the next; each
// epoch that a later attempt did again, since it was not saved; and
// for each epoch that was a probe, or warm-up after a restart, the difference to
// the same epoch of the untuned job, or to its median epoch where it lacks that.
// What was burnt between two attempts is not measured; it is charged at the mean
// power of the job's epochs, and at the price of what its owner asked for. Joules
// that were not measured, or by another source than the others, cannot be charged,
// and are not taken for none: see verify.Pair.
func Match(rows []Row) []Pair {
	rows = slices.DeleteFunc(slices.Clone(rows), func(r Row) bool {
		return !r.takesPart() || r.Ended.IsZero() || !r.finished()
	})
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(a.Ended.Compare(b.Ended), cmp.Compare(a.Job, b.Job))
	})
	type side struct {
		stratum
		tuned bool
	}
	waiting := map[side][]Row{}
	var out []Pair
	for _, r := range rows {
		other := side{r.stratum(), !r.Tuned}
		free := waiting[other]
		if len(free) == 0 {
			own := side{r.stratum(), r.Tuned}
			waiting[own] = append(waiting[own], r)
			continue
		}
		partner := free[len(free)-1]
		waiting[other] = free[:len(free)-1]
		if r.Tuned {
			out = append(out, pairUp(r, partner))
		} else {
			out = append(out, pairUp(partner, r))
		}
	}
	return out
}

func pairUp(tuned, untuned Row) Pair {
	p := verify.Pair{Tuned: tuned.evidence(), Untuned: untuned.evidence()}
	same, usual := map[int]tuning.Epoch{}, tuning.Epoch{Settings: untuned.Own} // of unknown joules
	var lengths []time.Duration
	for _, e := range untuned.epochs() {
		same[e.Number], lengths = e, append(lengths, e.End.Sub(e.Start))
	}
	usual.End = usual.Start.Add(tuning.Median(lengths))
	var bill bill
	held := tuned.Policy.Measure().Tariff.WithoutEnergy()
	price := func(e tuning.Epoch) float64 { return held.Price(e.Seconds(), 0, e.Settings) }
	for _, e := range tuned.epochs() {
		if !slices.Contains(tuned.Probed, e.Attempt) && (e.Attempt < 2 || !e.Warmup) {
			continue
		}
		u, both := same[e.Number]
		if !both {
			u = usual
		}
		p.ChargeSeconds += e.Seconds() - u.Seconds()
		p.ChargeHeld += price(e) - price(u)
		bill.add(e, 1)
		bill.add(u, -1)
	}
	for _, e := range tuned.repeated() {
		p.ChargeSeconds += e.Seconds()
		p.ChargeHeld += price(e)
		bill.add(e, 1)
	}
	if between := tuned.between().Seconds(); between > 0 {
		p.ChargeSeconds += between
		p.ChargeHeld += held.Price(between, 0, tuned.Own)
		bill.between(tuned.epochs(), between)
	}
	p.ChargeSeconds, p.ChargeHeld = max(0, p.ChargeSeconds), max(0, p.ChargeHeld)
	if p.JoulesUnknown = bill.unknown; !bill.unknown {
		p.ChargeJoules, p.ChargeSource = max(0, bill.joules), bill.source
	}
	return Pair{tuned, untuned, p}
}

// evidence are the epochs of a job. Those that chose the setting count as warm-up.
func (r Row) evidence() []tuning.Epoch {
	out := slices.Clone(r.Epochs)
	for i, e := range out {
		out[i].Warmup = e.Warmup || slices.Contains(r.Probed, e.Attempt)
	}
	return out
}

// bill sums joules up that are all of one source.
type bill struct {
	joules  tuning.Joules
	source  string // empty: of none yet
	unknown bool
}

// add adds the given share of an epoch's joules.
func (b *bill) add(e tuning.Epoch, share float64) {
	if e.Joules == nil || e.Source == "" || b.source != "" && b.source != e.Source {
		b.unknown = true
		return
	}
	b.joules += tuning.Joules(share) * *e.Joules
	b.source = e.Source
}

// between adds what was burnt in so many seconds at the mean power of the epochs.
func (b *bill) between(epochs []tuning.Epoch, seconds float64) {
	sum := bill{source: b.source}
	var lasted float64
	for _, e := range epochs {
		sum.add(e, 1)
		lasted += e.Seconds()
	}
	if sum.unknown || lasted <= 0 {
		b.unknown = true
		return
	}
	b.joules += sum.joules * tuning.Joules(seconds/lasted)
	b.source = sum.source
}

// between is the time between attempts, from the last epoch that one ended to the
// beginning of the next.
func (r Row) between() time.Duration {
	var sum time.Duration
	var last tuning.Epoch
	for _, e := range slices.SortedStableFunc(slices.Values(r.Epochs), tuning.Epoch.Compare) {
		if last.Attempt > 0 && e.Attempt != last.Attempt {
			sum += max(0, e.Start.Sub(last.End))
		}
		last = e
	}
	return sum
}

// savings compares per kind, and per objective where it has several kinds. All
// jobs are paired, and of the pairs those count whose jobs both ended in the
// period: another period never pairs them otherwise.
func savings(rows []Row, q Query) []Saving {
	groups := map[stratum]*Saving{}
	for _, r := range rows {
		if !r.takesPart() || r.Ended.IsZero() || !q.covers(r) {
			continue
		}
		s := r.stratum()
		if groups[s] == nil {
			groups[s] = &Saving{Kind: s.kind.String(), Objective: s.objective, Weight: s.weight, Epochs: s.epochs, Own: s.own}
		}
		groups[s].count(r)
	}
	pairs := map[stratum][]Pair{}
	for _, p := range Match(rows) {
		if q.covers(p.Tuned) && q.covers(p.Untuned) {
			pairs[p.Tuned.stratum()] = append(pairs[p.Tuned.stratum()], p)
		}
	}
	order, out := slices.SortedFunc(maps.Keys(groups), stratum.compare), []Saving{}
	for i := 0; i < len(order); {
		s, first := order[i], len(out)
		var together []Pair
		sum := Saving{Objective: s.objective, Weight: s.weight}
		for ; i < len(order) && order[i].objective == s.objective && order[i].weight == s.weight; i++ {
			v, own := groups[order[i]], pairs[order[i]]
			v.judge(own, q, true)
			together = append(together, own...)
			sum.Tuned, sum.Untuned = sum.Tuned+v.Tuned, sum.Untuned+v.Untuned
			sum.TunedUnfinished, sum.UntunedUnfinished = sum.TunedUnfinished+v.TunedUnfinished, sum.UntunedUnfinished+v.UntunedUnfinished
			out = append(out, *v)
		}
		if len(out)-first > 1 {
			sum.judge(together, q, false)
			out = slices.Insert(out, first, sum)
		}
	}
	return out
}

func (s *Saving) count(r Row) {
	switch {
	case r.Tuned && r.finished():
		s.Tuned++
	case r.Tuned:
		s.TunedUnfinished++
	case r.finished():
		s.Untuned++
	default:
		s.UntunedUnfinished++
	}
}

// judge compares the pairs. What an owner guards (quality, slowdown) is judged
// per kind only: over several kinds it has no one meaning.
func (s *Saving) judge(pairs []Pair, q Query, guarded bool) {
	s.Pairs = len(pairs)
	switch {
	case len(pairs) > 0:
		newest := pairs[len(pairs)-1].Tuned.Policy
		in := verify.Input{Measure: newest.Measure(), At: q.Until, Pairs: tuning.Each(pairs, func(p Pair) verify.Pair { return p.Evidence })}
		if guarded {
			in.MaxSlowdown, in.Quality = newest.MaxSlowdown, newest.Quality
		}
		s.Outcome = new(verify.Compare(in))
	case s.Tuned == 0:
		s.Note = "no tuned job has finished"
	case s.Kind == "":
		s.Note = NoUntuned
	case s.Untuned == 0:
		s.Note = fmt.Sprintf("%s: no control job of this kind, with as many epochs and the same requested settings, has finished", NoUntuned)
	default:
		s.Note = NoUntuned + ": untuned jobs of the period were paired with jobs that ended before it"
	}
}
