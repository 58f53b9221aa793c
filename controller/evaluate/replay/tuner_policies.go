package replay

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/search/recurring"
	"pitchpipe/controller/tuning"
)

// patience is how many attempts a run is given to reach its end at all.
const patience = 20

type paid struct {
	tuning.Spent
	coreSeconds float64
	cores       float64 // summed over runs
}

func (w *returns) pay(p *paid, point int, c tuning.Spent) {
	p.Spent = p.Plus(c)
	p.coreSeconds += c.Seconds * w.cores(point)
}

// ratio compares what runs took with n runs under the owner's settings, in what the goal
// minimises.
func (w *returns) ratio(p paid, n int) evaluate.Figure {
	own := w.expected(w.space.Own).Times(float64(n))
	cores := w.cores(w.space.Own)
	switch {
	case w.goal.Attain > 0:
		return evaluate.Figure(p.cores / (float64(n) * cores))
	case w.goal.Cores:
		return evaluate.Figure(p.coreSeconds / (own.Seconds * cores))
	}
	return evaluate.Figure(math.Exp(w.goal.Score(p.Spent, 1) - w.goal.Score(own, 1)))
}

// attempts makes one return of the job happen under a point, and again under the best one
// known where it does not reach its end.
func attempts(point int, best func() int, reaches func(point int) bool) {
	for range patience {
		if reaches(point) {
			return
		}
		point = best()
	}
}

// replay lets a tuner choose for n returns of the job: what it paid, and what it would
// choose from then on.
func (w *returns) replay(t *recurring.Tuner, n int) (paid, int) {
	var sum paid
	for range n {
		attempts(t.Course(), t.Best, func(point int) bool {
			last, reached := w.run(t, point, &sum)
			sum.cores += w.cores(last)
			return reached
		})
	}
	return sum, t.Best()
}

// run lets one run happen, epoch by epoch: the point of its last epoch, and whether it
// reached its end.
func (w *returns) run(t *recurring.Tuner, point int, sum *paid) (last int, reached bool) {
	w.begin()
	var spent tuning.Spent
	progress := 0.0
	for n := 1.0; ; n++ {
		p := t.Epoch(point)
		c := w.cost(p)
		if part := untilStop(t, point, spent, c); part < 1 {
			w.pay(sum, p, c.Times(part))
			t.Missed(point)
			return p, false
		}
		w.pay(sum, p, c)
		if w.cells[p].failed {
			t.Failed(p)
			return p, false
		}
		spent = spent.Plus(c)
		t.Measured(p, c)
		progress += 1 / w.epochs(p)
		switch {
		case progress >= 1-tolerance:
			t.Reached(point, n)
			return p, true
		case n >= w.longest:
			t.Missed(point)
			return p, false
		}
	}
}

// untilStop is the share of an epoch after which a run that has cost so much is stopped;
// 1: it is not.
func untilStop(t *recurring.Tuner, point int, spent, epoch tuning.Spent) float64 {
	stops := func(part float64) bool { return t.Stops(point, spent.Plus(epoch.Times(part))) }
	if !stops(1) {
		return 1
	}
	low, high := 0.0, 1.0
	for range 20 {
		if mid := (low + high) / 2; stops(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// wholeReplay lets a job return n times that cannot be moved while it runs: each return
// runs as a whole under one point. At most so many returns try a point (0: no limit), and
// never more than a site's share. A run that does not reach its end is run again under the
// best point known, paid too.
func (w *returns) wholeReplay(n, tries int) (sum paid, final, tried int, err error) {
	past := recurring.Whole{Space: w.space, Goal: w.goal}
	share := tuning.DefaultSite().ProbeShare
	for i := range n + 1 {
		advice, err := past.Next()
		if err != nil {
			return paid{}, 0, 0, fmt.Errorf("whole runs: %w", err)
		}
		point := advice.Best.Point
		if final = point; i == n { // what it would choose from then on
			break
		}
		within := float64(tried+1) <= share*float64(len(past.Runs)+1)
		if advice.Trying && (tries == 0 || tried < tries) && within {
			point = advice.Next.Point
			tried++
		}
		attempts(point, func() int { return advice.Best.Point }, func(point int) bool {
			one, reached := w.once(point, &sum)
			if reached {
				past.Runs = append(past.Runs, one)
			} else {
				past.Failed = append(past.Failed, point)
			}
			return reached
		})
	}
	return sum, final, tried, nil
}

// once runs a job to its end under one point.
func (w *returns) once(point int, sum *paid) (recurring.Run, bool) {
	w.begin()
	epochs := min(w.epochs(point), w.longest)
	reached := w.epochs(point) <= w.longest && !w.cells[point].failed
	w.pay(sum, point, w.cost(point).Times(epochs))
	return recurring.Run{Parts: []recurring.Part{{Point: point, Epochs: epochs, Cost: w.cost(point)}}, Epochs: epochs, Weight: 1}, reached
}

// ledger is what a policy without a model knows: what each point cost it.
type ledger struct {
	*returns
	seen  []float64 // runs by point
	costs []tuning.Spent
	sum   paid
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

// runs makes one run happen under a point, and says whether it reached its end. It is stopped
// when it costs beta times the best.
func (l *ledger) runs(p int) (reached bool) {
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
	l.pay(&l.sum, p, c.Times(n))
	l.sum.cores += l.cores(p)
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

// follow runs a policy over n returns, the first under the owner's settings.
func (w *returns) follow(next policy, n int) (paid, int) {
	l := &ledger{returns: w, seen: make([]float64, len(w.cells)), costs: make([]tuning.Spent, len(w.cells))}
	for i := range n {
		p := w.space.Own
		if i > 0 {
			p = next(l, i-1)
		}
		if p < 0 {
			p = l.best()
		}
		attempts(p, l.best, l.runs)
	}
	return l.sum, l.best()
}

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
