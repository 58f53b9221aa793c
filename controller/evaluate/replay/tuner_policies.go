package replay

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// patience is how many attempts a run is given to reach its end at all.
const patience = 20

// chooser chooses the points of a job that returns, and lets its runs happen.
type chooser interface {
	next() (point int)          // of the next return
	best() (point int)          // by what it paid so far
	run(point int) (ended bool) // false: the run did not reach its end
}

// follow lets a job return n times: what its chooser would choose from then on. A run that
// does not reach its end happens again under the best point known, paid too.
func follow(c chooser, n int) int {
	for range n {
		point := c.next()
		for tries := 0; tries < patience && !c.run(point); tries++ {
			point = c.best()
		}
	}
	return c.best()
}

// bill is what the runs of a job that returns took.
type bill struct {
	*returns
	tuning.Spent
	coreSeconds float64
	allCores    float64 // summed over runs
}

func (b *bill) pay(point int, c tuning.Spent) {
	b.Spent = b.Plus(c)
	b.coreSeconds += c.Seconds * b.cores(point)
}

// ratio compares it with n runs under the owner's settings, in what the goal minimises.
func (b *bill) ratio(n int) evaluate.Figure {
	own := b.expected(b.space.Own).Times(float64(n))
	cores := b.cores(b.space.Own)
	switch {
	case b.goal.Attain > 0:
		return evaluate.Figure(b.allCores / (float64(n) * cores))
	case b.goal.Cores:
		return evaluate.Figure(b.coreSeconds / (own.Seconds * cores))
	}
	return evaluate.Figure(math.Exp(b.goal.Score(b.Spent, 1) - b.goal.Score(own, 1)))
}

// tuned is a job that the tuner moves within its runs.
type tuned struct {
	bill
	*recurring.Tuner
}

func (t *tuned) next() int { return t.Course() }
func (t *tuned) best() int { return t.Best() }

// run goes on epoch by epoch.
func (t *tuned) run(point int) bool {
	t.begin()
	var spent tuning.Spent
	progress, p := 0.0, point
	defer func() { t.allCores += t.cores(p) }()
	for n := 1.0; ; n++ {
		p = t.Epoch(point)
		c := t.cost(p)
		part := t.untilStop(point, spent, c)
		t.pay(p, c.Times(part))
		if part == 1 && t.cells[p].failed {
			t.Failed(p)
			return false
		}
		if part == 1 {
			spent = spent.Plus(c)
			t.Measured(p, c)
			progress += 1 / t.epochs(p)
		}
		switch {
		case progress >= 1-tolerance:
			t.Reached(point, n)
			return true
		case part < 1, n >= t.longest:
			t.Missed(point)
			return false
		}
	}
}

// untilStop is the share of an epoch after which a run that has cost so much is stopped;
// 1: it is not.
func (t *tuned) untilStop(point int, spent, epoch tuning.Spent) float64 {
	const steps = 1 << 20
	stops := func(n int) bool { return t.Stops(point, spent.Plus(epoch.Times(float64(n)/steps))) }
	if !stops(steps) {
		return 1
	}
	return float64(1+sort.Search(steps-1, func(i int) bool { return stops(1 + i) })) / steps
}

// whole is a job that cannot be moved while it runs: each return runs as a whole under one
// point. At most so many returns try a point (0: no limit), and never more than a site's share.
type whole struct {
	bill
	past         recurring.Whole
	tries, tried int
	err          error
}

func (w *whole) advice() recurring.Advice {
	out, err := w.past.Next()
	w.err = cmp.Or(w.err, err)
	return out
}

func (w *whole) best() int { return w.advice().Best.Point }

func (w *whole) next() int {
	advice := w.advice()
	within := float64(w.tried+1) <= tuning.DefaultSite().ProbeShare*float64(len(w.past.Runs)+1)
	if advice.Trying && (w.tries == 0 || w.tried < w.tries) && within {
		w.tried++
		return advice.Next.Point
	}
	return advice.Best.Point
}

func (w *whole) run(point int) bool {
	w.begin()
	epochs := min(w.epochs(point), w.longest)
	w.pay(point, w.cost(point).Times(epochs))
	if w.epochs(point) > w.longest || w.cells[point].failed {
		w.past.Failed = append(w.past.Failed, point)
		return false
	}
	one := recurring.Part{Point: point, Epochs: epochs, Cost: w.cost(point)}
	w.past.Runs = append(w.past.Runs, recurring.Run{Parts: []recurring.Part{one}, Epochs: epochs, Weight: 1})
	return true
}

// ledger is what a policy without a model knows: what each point cost it.
type ledger struct {
	bill
	policy policy
	nth    int       // return
	seen   []float64 // runs by point
	costs  []tuning.Spent
}

// mean is what a run under a point took.
func (l *ledger) mean(p int) tuning.Spent { return l.costs[p].Times(1 / max(l.seen[p], 1)) }

// paidScore rates a point by what was paid for it; +Inf: unknown, or it breaks a limit.
func (l *ledger) paidScore(p int) float64 {
	if l.seen[p] == 0 || p != l.space.Own && l.goal.Excess(l.mean(p), l.mean(l.space.Own)) > 0 {
		return math.Inf(1)
	}
	for q, n := range l.seen { // slower than the share of full speed that is to be attained
		if n > 0 && l.goal.Attain > 0 && l.mean(p).Seconds*l.goal.Attain > l.mean(q).Seconds {
			return math.Inf(1)
		}
	}
	return l.score(l.mean(p), p)
}

func (l *ledger) best() int {
	best, least := l.space.Own, l.paidScore(l.space.Own)
	for p := range l.seen {
		if s := l.paidScore(p); s < least {
			best, least = p, s
		}
	}
	return best
}

// next is the owner's point at first.
func (l *ledger) next() int {
	p := l.space.Own
	if l.nth > 0 {
		p = l.policy(l, l.nth-1)
	}
	if l.nth++; p < 0 {
		p = l.best()
	}
	return p
}

// run is stopped when it costs beta times the best.
func (l *ledger) run(p int) bool {
	powers := 1.0 // how often the score counts a factor that seconds and joules share
	if !l.goal.Least() {
		powers = l.goal.Degree()
	}
	stop := math.Inf(1)
	if p != l.space.Own && !l.goal.Least() {
		stop = l.paidScore(l.best()) + powers*math.Log(recurring.Beta)
	}
	l.begin()
	c, n, reached := l.cost(p), l.epochs(p), true
	if math.IsInf(n, 1) {
		n, reached = l.longest, false
	}
	one := l.score(c, p)
	switch {
	case l.cells[p].failed:
		n, reached = 1, false
	case one+powers*math.Log(n) > stop:
		n, reached = math.Exp((stop-one)/powers), false
	}
	l.pay(p, c.Times(n))
	l.allCores += l.cores(p)
	l.seen[p]++
	l.costs[p] = l.costs[p].Plus(c.Times(n))
	if l.cells[p].failed {
		l.costs[p].Seconds = math.Inf(1)
	}
	if !reached {
		l.costs[p] = l.costs[p].Plus(l.mean(l.best())) // the run that follows is its doing
	}
	return reached
}

// policy says which point is next; -1: the best one known.
type policy func(l *ledger, i int) int

func random(l *ledger, _ int) int { return l.rng.IntN(len(l.cells)) }

// grid takes one point after another, once each, and then the best.
func grid(l *ledger, i int) int {
	if i < len(l.cells) {
		return i
	}
	return -1
}

// halving runs all points once, the better half of them again, and so on, and then the best.
func halving() policy {
	var round []int
	at := 0
	return func(l *ledger, i int) int {
		if i == 0 {
			round = l.rng.Perm(len(l.cells))
		}
		if at == len(round) {
			slices.SortStableFunc(round, func(a, b int) int { return cmp.Compare(l.paidScore(a), l.paidScore(b)) })
			round, at = round[:(len(round)+1)/2], 0
		}
		if len(round) == 1 {
			return -1
		}
		at++
		return round[at-1]
	}
}
