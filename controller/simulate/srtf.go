package simulate

import (
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
)

// srtf runs the jobs with the least work left, whichever run now: an oracle. To stop and go on costs a job as much
// as with tiresias.
func srtf() Spec {
	return Spec{Name: "srtf", Oracle: true, Ticks: true, New: whatever(func(p *Pool) Policy {
		order := func(j *Job) (float64, float64) { return p.Remaining(j), float64(evaluate.Yes(j.Running())) }
		return &srtfPolicy{quota{pool: p, order: order, waiting: map[int]*events{}}}
	})}
}

type srtfPolicy struct{ quota }

// Decide: what is chosen now stays chosen until a job comes or ends: those that run only come
// nearer to their end, and those that wait do not.
func (s *srtfPolicy) Decide() float64 {
	s.choose()
	return math.Inf(1)
}

// quota lets an order of jobs share the units, whether they run or wait: each that still fits the sum of the units is
// chosen. Those chosen start, the others stop. Jobs that wait keep their place in the order; they are kept by their
// size, for once one does not fit, no other of its size does.
type quota struct {
	pool    *Pool
	order   func(*Job) (key, tie float64)
	waiting map[int]*events // by units
	units   int             // of all who wait
	running []item          // in the order, as it was; some may have ended
	count   int
}

func (q *quota) Arrive(j *Job) {
	if q.waiting[j.Units] == nil {
		q.waiting[j.Units] = &events{}
	}
	key, tie := q.order(j)
	q.count++
	q.units += j.Units
	q.waiting[j.Units].push(item{key: key, tie: tie, seq: q.count, job: j})
}

func (*quota) Ended(*Job) {}

// choose reports whether it started or stopped a job.
func (q *quota) choose() bool {
	left, running := q.pool.Free(), []item(nil)
	if q.units > left { // else there is room next to those that run
		left, running = q.pool.Units(), q.ranked()
	}
	var heads events // the first of each size that may fit
	next := func(units int) {
		if all := q.waiting[units]; len(*all) > 0 && units <= left {
			heads.push(all.pop())
		}
	}
	for units := range q.waiting {
		next(units)
	}
	var chosen []item
	var stop []*Job
	for len(heads) > 0 || len(chosen) > 0 && len(running) > 0 {
		if len(running) > 0 && (len(heads) == 0 || running[0].compare(heads[0]) < 0) {
			if j := running[0].job; j.Units <= left {
				left -= j.Units
			} else {
				stop = append(stop, j)
			}
			running = running[1:]
			continue
		}
		e := heads.pop()
		if units := e.job.Units; units <= left {
			left, chosen = left-units, append(chosen, e)
			next(units)
		} else {
			q.waiting[units].push(e)
		}
	}
	for _, j := range stop {
		q.pool.Preempt(j, restart(j))
		q.Arrive(j)
	}
	if len(stop) > 0 {
		q.forget()
	}
	started := false
	for _, e := range chosen {
		if q.pool.Start(e.job) {
			q.units, q.running, started = q.units-e.job.Units, append(q.running, e), true
		} else { // the free units are too scattered
			q.waiting[e.job.Units].push(e)
		}
	}
	return started || len(stop) > 0
}

func (q *quota) forget() {
	q.running = slices.DeleteFunc(q.running, func(e item) bool { return !e.job.Running() })
}

// ranked are the jobs that run, in the order. Of equals they come before those that wait.
func (q *quota) ranked() []item {
	q.forget()
	for i, e := range q.running {
		key, tie := q.order(e.job)
		q.running[i] = item{key: key, tie: tie, seq: e.job.order - math.MaxInt, job: e.job}
	}
	slices.SortFunc(q.running, item.compare)
	return q.running
}

// restart is what it costs a job to save and start again, in seconds of its work, as Lucid's authors measured.
func restart(j *Job) float64 {
	const small, cost, largeCost = 8, 40, 60 // units and seconds
	if j.Units <= small {
		return cost
	}
	return largeCost
}
