package simulate

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
)

// ErrStuck marks a simulation whose policy leaves jobs waiting for ever.
var ErrStuck = errors.New("the policy leaves jobs waiting although nothing runs")

// ErrInput marks what cannot be simulated: it lacks what the policy needs.
var ErrInput = errors.New("invalid input of a simulation")

// Policy schedules the jobs of one pool. It keeps its queue itself.
type Policy interface {
	Arrive(j *Job)           // the job waits
	Ended(j *Job)            // it has ended, as j says, and its units are free
	Decide() (again float64) // once at each moment at which something happened; again: wake me then, +Inf: no need
}

// Expirer is a Policy that has a say when a job reaches its limit.
type Expirer interface {
	Expire(j *Job) // a job that still runs and has the same limit is killed
}

// Spec is a policy that can be simulated.
type Spec struct {
	Name   string
	Oracle bool // it knows true durations
	Ticks  bool // time is in whole seconds and the end of a job is noticed one second late, as in Lucid's simulator
	// New makes what makes the policy of each pool.
	New     func(ctx context.Context, in Input) (func(*Pool) Policy, error)
	Columns []string               // further columns of the jobs' table, after those of every policy
	Cells   func(j *Job) []float64 // of them; NaN: empty
}

// Specs lists the policies.
func Specs() []Spec {
	return []Spec{fifo(), sjf(), srtf(), qssf(), tiresias(), lucid(), easy(), easyForecast(), pitchpipe()}
}

// whatever is the New of a policy that needs nothing but its pool.
func whatever(each func(*Pool) Policy) func(context.Context, Input) (func(*Pool) Policy, error) {
	return func(context.Context, Input) (func(*Pool) Policy, error) { return each, nil }
}

// Partition is a part of a cluster: nodes alike, jobs that run nowhere else.
type Partition struct {
	Group          string // of the jobs; empty: all
	Nodes, PerNode int    // PerNode: units of a node
	GPUs           bool   // units are GPUs, else cores
}

// Input is what is simulated.
type Input struct {
	Log        joblog.Log
	Partitions []Partition
}

// Result is what a simulation found.
type Result struct {
	Spec    Spec
	Jobs    []*Job // in the order of the log
	Pools   []*Pool
	Moments []Moment // once a minute at most
}

// Moment is how many jobs ran and waited from At on.
type Moment struct {
	At               float64
	Running, Waiting int
}

// item is one of a heap: a job of a queue, the end of a job in the calendar or, without a job, the waking of a pool.
type item struct {
	key, tie float64 // what comes first; of events the key is the time
	seq      int
	job      *Job
	turn     int
	pool     *Pool
}

func (e item) compare(o item) int {
	return cmp.Or(cmp.Compare(e.key, o.key), cmp.Compare(e.tie, o.tie), cmp.Compare(e.seq, o.seq))
}

type sim struct {
	spec     Spec
	calendar events
	orders   int
	done     int
	running  int
	dirty    []*Pool
}

// Run simulates the jobs under a policy. report, which may be nil, hears of each tenth of the jobs that is done.
func Run(ctx context.Context, in Input, spec Spec, report evaluate.Progress) (Result, error) {
	s := &sim{spec: spec}
	out := Result{Spec: spec}
	each, err := spec.New(ctx, in)
	if err != nil {
		return out, fmt.Errorf("simulate %s: %w", spec.Name, err)
	}
	of := map[string]*Pool{}
	for _, part := range in.Partitions {
		p := &Pool{Partition: part, sim: s}
		for i := range part.Nodes {
			p.nodes = append(p.nodes, &node{id: i, free: part.PerNode})
		}
		p.policy = each(p)
		of[part.Group], out.Pools = p, append(out.Pools, p)
	}
	arrivals := jobs(in, of, &out)
	for next, tenth := 0, 0; s.done < len(out.Jobs); {
		if err := ctx.Err(); err != nil {
			return out, fmt.Errorf("simulate %s: %w", spec.Name, err)
		}
		now := math.Inf(1)
		if next < len(arrivals) {
			now = arrivals[next].Submit
		}
		if len(s.calendar) > 0 {
			now = min(now, s.calendar[0].key)
		}
		if math.IsInf(now, 1) {
			return out, fmt.Errorf("simulate %s: %w: %d of %d", spec.Name, ErrStuck, len(out.Jobs)-s.done, len(out.Jobs))
		}
		for len(s.calendar) > 0 && s.calendar[0].key <= now {
			s.happen(s.calendar.pop(), now)
		}
		for ; next < len(arrivals) && arrivals[next].Submit <= now; next++ {
			j := arrivals[next]
			s.touch(j.pool, now)
			j.pool.policy.Arrive(j)
		}
		s.decide()
		const minute = 60
		if n := len(out.Moments); n == 0 || now >= out.Moments[n-1].At+minute {
			out.Moments = append(out.Moments, Moment{At: now})
		}
		m := &out.Moments[len(out.Moments)-1]
		m.Running, m.Waiting = s.running, next-s.done-s.running
		if now := 10 * s.done / len(out.Jobs); now > tenth && report != nil {
			tenth = now
			report(s.done, len(out.Jobs), "jobs under "+spec.Name)
		}
	}
	return out, nil
}

// happen ends a job, or wakes a pool.
func (s *sim) happen(e item, now float64) {
	j := e.job
	if j == nil {
		s.touch(e.pool, now)
		return
	}
	if e.turn != j.turn {
		return
	}
	p := j.pool
	s.touch(p, now)
	if j.stopsEarly {
		if x, ok := p.policy.(Expirer); ok {
			x.Expire(j)
			if j.turn != e.turn {
				return
			}
		}
		j.Killed = true
	}
	p.stop(j)
	p.finish(j, now)
	p.policy.Ended(j)
}

func (s *sim) touch(p *Pool, now float64) {
	if p.Now = now; !slices.Contains(s.dirty, p) {
		s.dirty = append(s.dirty, p)
	}
}

func (s *sim) decide() {
	for _, p := range s.dirty {
		if again := p.policy.Decide(); again > p.Now && !math.IsInf(again, 1) {
			s.orders++
			s.calendar.push(item{key: again, seq: s.orders, pool: p})
		}
	}
	s.dirty = s.dirty[:0]
}

// jobs makes the jobs and returns them in the order of their arrival: rows with the same submission keep theirs.
func jobs(in Input, of map[string]*Pool, out *Result) []*Job {
	asked, all := slices.Clone(in.Log.Jobs), make([]Job, len(in.Log.Jobs))
	out.Jobs = make([]*Job, len(all))
	for i := range asked {
		j, l := &all[i], &asked[i]
		*j = Job{Job: l, First: math.NaN(), End: math.NaN(), duration: l.Duration, remain: l.Duration, queued: l.Submit, rate: 1, limit: math.Inf(1), pool: of[l.Group]}
		l.Start, l.Duration, l.State, l.MemoryUsed, l.CPUSeconds = 0, 0, "", 0, 0 // no submission says it
		if l.Limit > 0 {
			j.limit = l.Limit
		}
		if j.pool == nil {
			j.pool = of[""]
		}
		if j.Units = l.CPUs; j.pool.GPUs {
			j.Units = l.GPUs
		}
		out.Jobs[i], j.pool.jobs = j, append(j.pool.jobs, j)
	}
	sorted := slices.Clone(out.Jobs)
	slices.SortStableFunc(sorted, func(a, b *Job) int { return cmp.Compare(a.Submit, b.Submit) })
	for i, j := range sorted {
		j.Seq = i
	}
	return sorted
}

type events []item

func (e *events) push(x item) { heap.Push(e, x) }
func (e *events) pop() item   { return heap.Pop(e).(item) } //nolint:forcetypeassert // no other type is in it

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].compare(e[j]) < 0 }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(item)) }

func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last], *e = item{}, (*e)[:last]
	return x
}
