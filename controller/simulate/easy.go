package simulate

import (
	"cmp"
	"math"
	"slices"
)

// easy starts jobs in the order of their arrival. The first that does not fit gets a reservation at the moment at
// which enough units are free if running jobs take as long as their limits allow; later jobs may pass it where they
// do not delay it (EASY: Lifka, JSSPP 1995; Mu'alem and Feitelson, IEEE TPDS 12(6), 2001). Jobs are killed at their limits.
func easy() Spec {
	return Spec{Name: "easy", New: whatever(func(p *Pool) Policy { return &backfill{pool: p} })}
}

// backfill is a queue with a reservation for its head. It plans with the limits of the jobs. A job without one is
// expected to take as long as the longest that was asked for.
type backfill struct {
	pool    *Pool
	queue   map[alike][]*Job   // by arrival
	rank    func(*Job) float64 // orders the queue at each decision, the least first; nil: by arrival
	begins  func(*Job)         // hears of a job that began; may be nil
	ends    []item             // those that run, by the moment at which they are to end
	longest float64            // that was asked for, s
}

// alike are jobs in line: where the first cannot pass, none can.
type alike struct {
	units      int
	limit, key float64
}

func (b *backfill) Arrive(j *Job) {
	b.longest = max(b.longest, j.Limit)
	if b.queue == nil {
		b.queue = map[alike][]*Job{}
	}
	like := alike{j.Units, j.limit, j.key}
	b.queue[like] = append(b.queue[like], j)
}

func (b *backfill) Ended(j *Job) {
	if i, ok := slices.BinarySearchFunc(b.ends, item{key: j.key, seq: j.order}, item.compare); ok {
		b.ends = slices.Delete(b.ends, i, i+1)
	}
}

// runs notes when a job that runs is to end.
func (b *backfill) runs(j *Job) {
	j.key = j.began + b.seconds(j)
	e := item{key: j.key, seq: j.order, job: j}
	i, _ := slices.BinarySearchFunc(b.ends, e, item.compare)
	b.ends = slices.Insert(b.ends, i, e)
}

func (b *backfill) seconds(j *Job) float64 {
	if math.IsInf(j.limit, 1) && b.longest > 0 {
		return b.longest
	}
	return j.limit
}

func (b *backfill) Decide() float64 {
	p, least := b.pool, math.MaxInt
	for like := range b.queue {
		least = min(least, like.units)
	}
	if least > p.Free() {
		return math.Inf(1)
	}
	var heads events
	first := func(j *Job) item {
		e := item{seq: j.Seq, job: j}
		if b.rank != nil {
			e.key = b.rank(j)
		}
		return e
	}
	var large item // the first that is too large: no other of them matters
	for like, jobs := range b.queue {
		if e := first(jobs[0]); like.units <= p.Free() {
			heads.push(e)
		} else if large.job == nil || e.compare(large) < 0 {
			large = e
		}
	}
	if large.job != nil {
		heads.push(large)
	}
	start, waits := 0.0, false // when the first that waits begins
	for len(heads) > 0 && p.Free() >= least {
		j := heads.pop().job
		var at *place
		switch {
		case !waits:
			if at = p.find(j.Units); at == nil {
				start, waits = b.reserve(j), true
			}
		case p.Now+b.seconds(j) <= start && !math.IsInf(start, 1): // it is gone by then
			at = p.findIn(j.Units, unoccupied, leastSpare)
		default:
			if at = p.findIn(j.Units, unreserved, equally); at != nil {
				for _, s := range at.of {
					s.node.spare -= s.units
				}
			}
		}
		if at == nil {
			continue
		}
		like := alike{j.Units, j.limit, j.key}
		if b.queue[like] = b.queue[like][1:]; len(b.queue[like]) > 0 {
			heads.push(first(b.queue[like][0]))
		} else {
			delete(b.queue, like)
		}
		p.take(at, 1)
		if p.begin(j, at); b.begins != nil {
			b.begins(j)
		}
		b.runs(j)
	}
	return math.Inf(1)
}

// unreserved is how many units of a node a job can have although another begins later.
func unreserved(n *node) int { return min(n.free, n.spare) }

// leastSpare puts nodes first that the reservation needs: those to spare are left for longer jobs.
func leastSpare(a, b *node) int { return cmp.Compare(unreserved(a), unreserved(b)) }

// reserve finds when the job can start if all run as long as their limits allow, and sets what each node then
// has to spare besides.
func (b *backfill) reserve(j *Job) float64 {
	p := b.pool
	for _, n := range p.nodes {
		n.spare = n.free
	}
	at, start, n := (*place)(nil), p.Now, 0
	for ; at == nil && n < len(b.ends); n++ { // as if they had ended
		p.take(b.ends[n].job.place, -1)
		start = max(p.Now, b.ends[n].key)
		if n+1 == len(b.ends) || b.ends[n+1].key > start || math.IsInf(start, 1) { // without limits the oldest end first
			at = p.find(j.Units)
		}
	}
	if at != nil { // where least is free until then
		at = p.findIn(j.Units, unoccupied, func(a, b *node) int { return cmp.Compare(a.spare, b.spare) })
		p.take(at, 1)
	}
	for _, n := range p.nodes {
		n.spare = n.free
	}
	if at != nil {
		p.take(at, -1)
	}
	for _, e := range b.ends[:n] {
		p.take(e.job.place, 1)
	}
	return start
}
