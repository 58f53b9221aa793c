package tuner

import (
	"cmp"
	"math"
	"slices"

	"pitchpipe/controller/search/recur"
	"pitchpipe/controller/tuning"
)

// ledger is what a policy without a model knows: what each point cost it.
type ledger struct {
	w     *world
	seen  []float64 // runs by point
	costs []tuning.Spent
	sum   paid
}

func (w *world) ledger() *ledger {
	return &ledger{w: w, seen: make([]float64, len(w.cells)), costs: make([]tuning.Spent, len(w.cells))}
}

// score of a point by what was paid for it, with broken limits as +Inf.
func (l *ledger) score(p int) float64 {
	if l.seen[p] == 0 {
		return math.Inf(1)
	}
	own := l.w.space.Own
	c := l.costs[p].Times(1 / l.seen[p])
	if p != own && l.w.goal.Excess(c, l.costs[own].Times(1/l.seen[own])) > 0 || l.slow(p) {
		return math.Inf(1)
	}
	return l.w.goal.Score(c, l.w.cores(p))
}

// slow tells whether a point does not attain the share of full speed asked for.
func (l *ledger) slow(p int) bool {
	if l.w.goal.Attain == 0 {
		return false
	}
	fastest := math.Inf(1)
	for q, n := range l.seen {
		if n > 0 {
			fastest = min(fastest, l.costs[q].Seconds/n)
		}
	}
	return l.costs[p].Seconds/l.seen[p]*l.w.goal.Attain > fastest
}

func (l *ledger) best() int {
	best, least := l.w.space.Own, l.score(l.w.space.Own)
	for p := range l.seen {
		if s := l.score(p); s < least {
			best, least = p, s
		}
	}
	return best
}

// run makes one return of the job happen under a point, and again under the best one
// known where it does not reach its end.
func (l *ledger) run(p int) {
	for range patience {
		stop := math.Inf(1)
		if p != l.w.space.Own && !l.w.goal.Least() {
			stop = l.score(l.best()) + l.w.powers()*math.Log(recur.Beta)
		}
		c, reached := l.w.whole(p, stop)
		l.w.pay(&l.sum, p, c)
		l.sum.cores += l.w.cores(p)
		l.seen[p]++
		l.costs[p] = l.costs[p].Plus(c)
		if reached {
			return
		}
		if l.w.cells[p].failed {
			l.costs[p].Seconds = math.Inf(1)
		}
		l.costs[p] = l.costs[p].Plus(l.w.expectedOf(l)) // the run that follows is its doing
		p = l.best()
	}
}

// expectedOf is what a run under the best point known to a ledger took.
func (w *world) expectedOf(l *ledger) tuning.Spent {
	b := l.best()
	return l.costs[b].Times(1 / max(l.seen[b], 1))
}

// order is a policy that says which point is next; -1: the best one known.
type order func(l *ledger, i int) int

// follow runs a policy over n returns, of which the first is under the owner's settings.
func (w *world) follow(next order, n int) (paid, int) {
	l := w.ledger()
	for i := range n {
		p := w.space.Own
		if i > 0 {
			p = next(l, i-1)
		}
		if p < 0 {
			p = l.best()
		}
		l.run(p)
	}
	return l.sum, l.best()
}

// random draws a point for each return.
func random(l *ledger, _ int) int { return l.w.rng.IntN(len(l.w.cells)) }

// grid takes one point after another, once each, and then the best.
func grid(l *ledger, i int) int {
	if i < len(l.w.cells) {
		return i
	}
	return -1
}

// halving runs all points once, the better half of them again, and so on, and then the
// best.
func halving() order {
	var round []int
	at := 0
	return func(l *ledger, i int) int {
		if i == 0 {
			round = l.w.rng.Perm(len(l.w.cells))
		}
		if at == len(round) {
			slices.SortStableFunc(round, func(a, b int) int { return cmp.Compare(l.score(a), l.score(b)) })
			round, at = round[:(len(round)+1)/2], 0
		}
		if len(round) == 1 {
			return -1
		}
		at++
		return round[at-1]
	}
}

// only is the table with the points that differ from the owner's in one knob alone, and
// which of the table's points they are.
func (t table) only(knob string) (table, []int) {
	own := t.space.Points[t.space.Own]
	sub, which := t, []int(nil)
	sub.space.Points, sub.cells = nil, nil
	for i, p := range t.space.Points {
		same := !slices.ContainsFunc(t.space.Knobs, func(k recur.Knob) bool {
			return k.Name != knob && p[k.Name] != own[k.Name]
		})
		if !same {
			continue
		}
		if i == t.space.Own {
			sub.space.Own = len(which)
		}
		which = append(which, i)
		sub.space.Points = append(sub.space.Points, p)
		sub.cells = append(sub.cells, t.cells[i])
	}
	sub.space.Knobs = slices.DeleteFunc(slices.Clone(t.space.Knobs), func(k recur.Knob) bool { return k.Name != knob })
	return sub, which
}
