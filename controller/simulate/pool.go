package simulate

import (
	"cmp"
	"math"
	"slices"
)

// node is a machine. Its id matters only where nodes are lent.
type node struct {
	id     int
	free   int
	spare  int      // scratch of backfill: units that no reservation needs
	places []*place // scratch of pitchpipe
}

// Pool is a partition while it is simulated: its nodes, what runs, and the verbs of its policy.
type Pool struct {
	Partition

	Now     float64
	Running []*Job // in the order in which they began

	jobs   []*Job // that run nowhere else, in the order of the log
	nodes  []*node
	sim    *sim
	policy Policy
	used   float64 // unit-seconds until at
	at     float64
	busy   int
	sorted []*node // scratch
}

// Free is how many units are free.
func (p *Pool) Free() int { return p.Units() - p.busy }

// Units is how many units the nodes have that are there now.
func (p *Pool) Units() int { return len(p.nodes) * p.PerNode }

// find returns where units fit, chosen as Lucid's consolidate chooses, and nil where they do not fit. Up to a node: on
// the fullest that has room. Beyond: on whole nodes, and the rest on the next of those with most room.
func (p *Pool) find(units int) *place { return p.findIn(units, unoccupied, equally) }

func unoccupied(n *node) int { return n.free }

func equally(_, _ *node) int { return 0 }

// findIn is find on the part of each node that room says. Of the nodes with room it takes those that prefer puts first.
func (p *Pool) findIn(units int, room func(*node) int, prefer func(a, b *node) int) *place {
	if units > p.Free() {
		return nil
	}
	whole, rest := units/p.PerNode, units%p.PerNode
	if whole == 0 || units == p.PerNode {
		var best *node
		for _, n := range p.nodes {
			if room(n) >= units && (best == nil || cmp.Or(prefer(n, best), cmp.Compare(n.free, best.free)) < 0) {
				best = n
			}
		}
		if best == nil {
			return nil
		}
		return &place{of: []share{{best, units}}}
	}
	p.sorted = p.sorted[:0]
	for _, n := range p.nodes {
		if room(n) == p.PerNode || rest > 0 && room(n) >= rest {
			p.sorted = append(p.sorted, n)
		}
	}
	slices.SortStableFunc(p.sorted, func(a, b *node) int { return cmp.Or(prefer(a, b), cmp.Compare(room(b), room(a))) })
	out, last := &place{of: make([]share, 0, whole+1)}, (*node)(nil)
	for _, n := range p.sorted {
		if len(out.of) < whole && room(n) == p.PerNode {
			out.of = append(out.of, share{n, p.PerNode})
		} else if last == nil && rest > 0 {
			last = n
		}
	}
	if len(out.of) < whole || rest > 0 && last == nil {
		return nil
	}
	if rest > 0 {
		out.of = append(out.of, share{last, rest})
	}
	return out
}

// take makes a place busy (sign 1) or free (-1).
func (p *Pool) take(at *place, sign int) {
	p.used, p.at = p.used+float64(p.busy)*(p.Now-p.at), p.Now
	for _, s := range at.of {
		s.node.free -= sign * s.units
		p.busy += sign * s.units
	}
}

// Start begins a job that waits. False: it does not fit now.
func (p *Pool) Start(j *Job) bool {
	at := p.find(j.Units)
	if at == nil {
		return false
	}
	p.take(at, 1)
	p.begin(j, at)
	return true
}

// Pack begins a job on the units of a host that runs alone there. Both go on at the given rates: 1 is the speed
// of a job alone.
func (p *Pool) Pack(guest, host *Job, guestRate, hostRate float64) {
	p.begin(guest, host.place)
	p.SetRate(guest, guestRate)
	p.SetRate(host, hostRate)
}

func (p *Pool) begin(j *Job, at *place) {
	if math.IsNaN(j.First) {
		j.First = p.Now
	}
	at.users++
	p.sim.running++
	p.sim.orders++
	j.order = p.sim.orders
	j.Wait += p.Now - j.queued
	j.place, j.began, j.since, j.rate = at, p.Now, p.Now, 1
	p.Running = append(p.Running, j)
	p.schedule(j)
}

// SetRate changes the speed of a running job, which is above 0.
func (p *Pool) SetRate(j *Job, rate float64) {
	j.remain, j.since, j.rate = p.left(j), p.Now, rate
	p.schedule(j)
}

// SetLimit sets how many seconds a run of the job may take, for one that runs or will; +Inf is no limit.
func (p *Pool) SetLimit(j *Job, seconds float64) {
	j.limit = seconds
	if j.Running() {
		p.schedule(j)
	}
}

// Elapsed is how long the job has run in its present turn; Ran is that of all its turns.
func (p *Pool) Elapsed(j *Job) float64 {
	if !j.Running() {
		return 0
	}
	return p.Now - j.began
}

// Ran is how long the job has run in all its turns.
func (p *Pool) Ran(j *Job) float64 { return j.ran + p.Elapsed(j) }

// Remaining is the true work in seconds that is left of a job. Only oracles may know: NaN for all others.
func (p *Pool) Remaining(j *Job) float64 {
	if !p.sim.spec.Oracle {
		return math.NaN()
	}
	return p.left(j)
}

func (p *Pool) left(j *Job) float64 {
	if !j.Running() {
		return j.remain
	}
	if p.sim.spec.Ticks {
		left, _ := wear(j.remain, j.rate, p.Now-j.since)
		return left
	}
	return j.remain - (p.Now-j.since)*j.rate
}

// schedule puts the end of a running job into the calendar.
func (p *Pool) schedule(j *Job) {
	j.turn++
	end, grace := j.since, 0.0
	if p.sim.spec.Ticks {
		_, n := wear(j.remain, j.rate, math.Inf(1))
		grace = 1
		end += n + grace
	} else {
		end += max(j.remain, 0) / j.rate
	}
	last := j.began + j.limit
	if j.stopsEarly = last < end-grace; j.stopsEarly {
		end = max(last, p.Now)
	}
	p.sim.calendar.push(item{key: end, seq: j.order, job: j, turn: j.turn})
}

func (p *Pool) stop(j *Job) {
	j.remain = p.left(j)
	j.ran += p.Elapsed(j)
	j.turn++
	if j.place.users--; j.place.users == 0 {
		p.take(j.place, -1)
	}
	j.place = nil
	p.sim.running--
	i := slices.Index(p.Running, j)
	p.Running = slices.Delete(p.Running, i, i+1)
}

// Preempt stops a running job and keeps its progress, less what saving and starting again cost in seconds of
// work. The policy has the job in its queue again.
func (p *Pool) Preempt(j *Job, cost float64) {
	j.limit += cost - p.Elapsed(j) // of all its turns together
	p.stop(j)
	j.remain += cost
	j.Preempted++
	j.queued = p.Now
}

// Elsewhere ends a job that waits and never has to run here: it ran elsewhere.
func (p *Pool) Elsewhere(j *Job, start, end float64) {
	j.First, j.Wait, j.ran = start, start-j.Submit, end-start
	p.used += float64(j.Units) * (end - start)
	p.finish(j, end)
}

func (p *Pool) finish(j *Job, at float64) {
	j.End = at
	p.sim.done++
}
