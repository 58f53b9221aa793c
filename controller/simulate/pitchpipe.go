package simulate

import (
	"cmp"
	"context"
	"math"
	"slices"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/tuning"
)

// pitchpipe starts jobs in the order of the Gittins index (Gittins, J. R. Stat. Soc. B 41, 1979; for queues: Aalto,
// Ayesta, Righter, Queueing Systems 63, 2009): first comes the job that most likely ends for the time it gets. The index
// follows from how long the job has run and from a forecast, which learned from jobs that ended before. A job that has
// waited for long moves up.
//
// A job that does not fit stops jobs that come much later in the order, as few as possible. Those that can share the
// GPUs of another job go on at once; the others wait. When GPUs become free, a guest moves to its own if that saves more
// time than it costs.
//
// The policy learns how much memory and GPU time a job needs once the job has run for a while, and then judges which jobs
// can share. It does not know the measured speeds of pairs: only the simulation applies them.
func pitchpipe() Spec {
	return Spec{Name: "pitchpipe", New: func(_ context.Context, in Input) (func(*Pool) Policy, error) {
		model := durations.New() // of the whole site
		return func(p *Pool) Policy {
			return &pitchpipePolicy{pool: p, origin: in.Log.Origin, model: model, models: in.Log.Models, waiting: map[need][]*Job{}}
		}, nil
	}}
}

const (
	profiling  = 200       // s that a job runs before the policy knows its memory and GPU time, as with lucid
	memory     = 24576     // MiB of a GPU
	slowest    = 0.6       // of its own speed at which a job may share: taking turns would give each 0.5
	largest    = 8         // units of jobs that share: sharing was never measured for jobs of several machines
	patience   = 2         // times a job's index that another must have to stop it
	turn       = 600       // s that a job may run after each time it was stopped, so that stopping costs less than a tenth
	long       = 12 * 3600 // s of waiting that halve the index, or as long as 99 % of the jobs wait if that is more
	glance     = 60        // s between two decisions while jobs wait
	resort     = 600       // s after which lines are sorted again: an index falls by 5.6 % in it at most
	indistinct = 60        // s: the least index, about what a restart costs
)

type pitchpipePolicy struct {
	pool    *Pool
	origin  float64
	model   *durations.Model
	models  joblog.Models
	waiting map[need][]*Job // that wait, the urgent ones first
	again   float64         // when it wakes
	sorted  float64         // when the lines were sorted
	waits   waits           // of the jobs that ended
}

// need is what the jobs of a line have in common: if the most urgent cannot start, none of them can.
type need struct {
	units int
	kind  string // of a job that may share; else empty
}

type prospect struct {
	features durations.Features
	forecast []float64 // seconds, some quantiles, ascending; nil: nothing is known
	alone    joblog.Alone
	partner  *Job    // on the same units
	index    float64 // at this moment: small is urgent
	rank     float64 // seconds for an end, from which the index follows
	ranked   float64 // seconds that it had worked when its rank was found
	lost     float64 // seconds that stopping took
	leaving  bool    // it stops, or gets a guest, in the plan that is being made
}

func prospects(j *Job) *prospect { return j.Note.(*prospect) } //nolint:forcetypeassert // Arrive wrote it

func (o *pitchpipePolicy) Arrive(j *Job) {
	features, f := o.model.Submitted(*j.Job, o.origin)
	m := &prospect{alone: o.models.Alone[j.Kind], features: features}
	if f.Known() {
		const quantiles = 50
		for i := range quantiles {
			m.forecast = append(m.forecast, f.Quantile((float64(i)+0.5)/quantiles))
		}
	}
	j.Note = m
	o.wait(j)
}

// need is the line in which the job waits.
func (o *pitchpipePolicy) need(j *Job) need {
	if o.sharer(j) {
		return need{j.Units, j.Kind}
	}
	return need{units: j.Units}
}

// wait puts the job into its line.
func (o *pitchpipePolicy) wait(j *Job) {
	l := o.need(j)
	prospects(j).index = o.index(j)
	at, _ := slices.BinarySearchFunc(o.waiting[l], j, urgency)
	o.waiting[l] = slices.Insert(o.waiting[l], at, j)
}

// urgency puts jobs first that are urgent.
func urgency(a, b *Job) int {
	return cmp.Or(cmp.Compare(prospects(a).index, prospects(b).index), cmp.Compare(a.Seq, b.Seq))
}

func (o *pitchpipePolicy) Ended(j *Job) {
	o.model.Learn(durations.Ended{Features: prospects(j).features, Duration: o.worked(j), End: o.origin + o.pool.Now})
	o.waits.ended(j.Wait)
	o.leave(j)
	prospects(j).forecast = nil // of many jobs it is most of the memory
}

// worked is how long a job has run, without its restarts.
func (o *pitchpipePolicy) worked(j *Job) float64 { return max(0, o.pool.Ran(j)-prospects(j).lost) }

func (o *pitchpipePolicy) Decide() float64 {
	if len(o.waiting) > 0 {
		for _, j := range o.pool.Running {
			prospects(j).index = o.index(j)
		}
		if o.pool.Now >= o.sorted+resort {
			o.sorted = o.pool.Now
			for _, jobs := range o.waiting {
				for _, j := range jobs {
					prospects(j).index = o.index(j)
				}
				slices.SortFunc(jobs, urgency)
			}
		}
		o.serve()
	}
	o.separate()
	if len(o.waiting) > 0 && o.pool.Now >= o.again {
		o.again = o.pool.Now + glance
		return o.again
	}
	return math.Inf(1)
}

// index is the rank of a job, divided by more the longer it has waited, so that few wait much longer than the rest: small
// is urgent. The rank is that of gittins; it is found again when the job has run 2 % longer.
func (o *pitchpipePolicy) index(j *Job) float64 {
	waited := j.Wait
	if !j.Running() {
		waited += o.pool.Now - j.queued
	}
	m, worked := prospects(j), o.worked(j)
	const longer = 1.02
	if m.rank == 0 || worked > longer*m.ranked {
		m.rank, m.ranked = max(gittins(m.forecast, worked), indistinct), worked
	}
	return m.rank / (1 + math.Pow(waited/max(long, o.waits.long), 4))
}

// gittins is the inverse of the Gittins index in seconds: over all times to come, the least mean time spent until then per
// job that ends until then. A job that has outlived its forecast, or has none, takes as long again.
func gittins(forecast []float64, worked float64) float64 {
	from, _ := slices.BinarySearch(forecast, worked)
	rest := forecast[from:]
	if len(rest) < 2 {
		return worked
	}
	best, spent := math.Inf(1), 0.0
	for i, seconds := range rest[:len(rest)-1] { // the last one is not the end of all
		spent += seconds - worked
		ended := float64(i + 1)
		best = min(best, (spent+(float64(len(rest))-ended)*(seconds-worked))/ended)
	}
	return best
}

// left is how many seconds of a job are still to come, by its forecast.
func (o *pitchpipePolicy) left(j *Job) float64 {
	worked := o.worked(j)
	from, _ := slices.BinarySearch(prospects(j).forecast, worked)
	rest := prospects(j).forecast[from:]
	if len(rest) < 2 {
		return worked
	}
	return tuning.Sum(rest, func(seconds float64) float64 { return seconds - worked }) / float64(len(rest))
}

// serve starts what waits, in the order.
func (o *pitchpipePolicy) serve() {
	var heads events
	push := func(l need) {
		j := o.waiting[l][0]
		prospects(j).index = o.index(j)
		heads.push(item{key: prospects(j).index, seq: j.Seq, job: j})
	}
	for l := range o.waiting {
		push(l)
	}
	least := math.MaxInt // units that found no room: jobs that come later may stop even fewer
	for len(heads) > 0 {
		j := heads.pop().job
		l := o.need(j)
		if len(o.waiting[l]) == 0 || o.waiting[l][0] != j {
			continue // a job that was stopped came before it
		}
		var stopped []*Job
		if !o.pool.Start(j) && !o.pack(j) {
			if j.Units >= least {
				continue
			}
			if stopped = o.room(j); stopped == nil || !o.pool.Start(j) {
				least = j.Units
			}
		}
		if j.Running() {
			if o.waiting[l] = o.waiting[l][1:]; len(o.waiting[l]) == 0 {
				delete(o.waiting, l)
			} else {
				push(l)
			}
		}
		for _, s := range stopped { // they come later in the order
			if !s.Running() {
				o.wait(s)
				push(o.need(s))
			}
		}
	}
}

// stop takes a running job from its units.
func (o *pitchpipePolicy) stop(j *Job) {
	o.leave(j)
	cost := restart(j)
	o.pool.Preempt(j, cost)
	prospects(j).lost += cost
}

// offer is what can be had on a node.
type offer struct {
	jobs  []*Job // that are to stop
	worth float64
	waste int // units that they free and no job needs
}

// room stops jobs so that j fits, and returns them; or none.
func (o *pitchpipePolicy) room(j *Job) []*Job {
	bar, need := patience*prospects(j).index, min(j.Units, o.pool.PerNode)
	if !o.survey(bar) {
		return nil
	}
	var offers []offer
	for _, n := range o.pool.nodes {
		f, free := offer{worth: math.Inf(1)}, n.free
		slices.SortStableFunc(n.places, func(a, b *place) int { return cmp.Compare(b.worth, a.worth) })
		for _, t := range n.places {
			if free >= need {
				break
			}
			for _, s := range t.of {
				if s.node == n {
					free += s.units
				} else {
					f.waste += s.units
				}
			}
			f.worth, f.jobs = min(f.worth, t.worth), append(f.jobs, t.jobs...)
		}
		if f.waste += free - need; free >= need {
			offers = append(offers, f)
		}
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Or(cmp.Compare(b.worth, a.worth), cmp.Compare(a.waste, b.waste)) })
	nodes := (j.Units + o.pool.PerNode - 1) / o.pool.PerNode
	if len(offers) < nodes {
		return nil
	}
	var out []*Job
	for _, f := range offers[:nodes] {
		for _, v := range f.jobs {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	if !o.displace(out, bar) {
		return nil
	}
	return out
}

// survey finds who is on each place, and what the place is worth: the index of the most urgent job there that cannot share
// with another. It reports whether any is worth more than the bar.
func (o *pitchpipePolicy) survey(bar float64) bool {
	for _, n := range o.pool.nodes {
		n.places = n.places[:0]
	}
	for _, j := range o.pool.Running {
		j.place.jobs, j.place.worth = j.place.jobs[:0], math.Inf(1)
	}
	found := false
	for _, j := range o.pool.Running {
		at := j.place
		at.jobs = append(at.jobs, j)
		switch elapsed := o.pool.Elapsed(j); {
		case elapsed <= turn*float64(j.Preempted): // not again so soon; longer each time
			at.worth = 0
		case o.host(j) == nil:
			at.worth = min(at.worth, prospects(j).index)
		}
		if len(at.jobs) < at.users || at.worth <= bar {
			continue
		}
		found = true
		for _, s := range at.of {
			s.node.places = append(s.node.places, at)
		}
	}
	return found
}
