package simulate

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/tuning"
)

// lucid profiles jobs of up to 8 GPUs for 200 s, orders by forecast seconds times GPUs, and packs two jobs that suffer
// little onto the same GPUs while many others come (Hu et al., ASPLOS 2023). It is the published program: a job
// that is profiled may run at the same time, and a guest whose host ended stays slow.
func lucid() Spec {
	return Spec{
		Name: "lucid", Ticks: true,
		New: func(ctx context.Context, in Input) (func(*Pool) Policy, error) {
			m := in.Log.Models
			if len(m.EBM) == 0 || len(m.Alone) == 0 || len(m.Pairs) == 0 || len(m.Arrivals) == 0 {
				return nil, fmt.Errorf("%w: lucid needs a log in a folder with *_ebm*.csv, single_data.csv, colocate_info.csv and *_throughput_pred.csv", ErrInput)
			}
			profiles, lends, err := profile(ctx, in)
			flips := modes(m.Arrivals)
			return func(p *Pool) Policy {
				l := &lucidPolicy{pool: p, models: m, profiles: profiles, flips: flips}
				switch p.Group { // as the authors set Venus up
				case "vc8Gr", "vcefl":
					if p.Nodes > 1 {
						p.nodes = p.nodes[:p.Nodes-1]
					}
				case "vcYVn":
					l.lends = lends
				}
				return l
			}, err
		},
		Columns: []string{"profiled", "profqueue", "toskip", "exclusive", "sharescore", "priority"},
		Cells: func(j *Job) []float64 {
			n := note(j)
			if n.profile.done {
				return []float64{1, n.profile.start - j.Submit, 1, 1, math.NaN(), -1}
			}
			return []float64{float64(evaluate.Yes(n.profile.had)), n.waited, 0, float64(evaluate.Yes(!n.shared)), n.alone.Sharing, n.priority}
		},
	}
}

type lucidNote struct {
	profile  profiled
	waited   float64 // for the profiler
	alone    joblog.Alone
	priority float64
	shared   bool
	host     *Job // whose guest it became
}

type lucidPolicy struct {
	pool     *Pool
	models   joblog.Models
	profiles map[string]profiled
	queue    []*Job // by priority
	flips    []float64
	lends    []lend // still to come
	lent     bool   // a node has been taken at least once
}

func (l *lucidPolicy) Arrive(j *Job) {
	n := &lucidNote{profile: l.profiles[j.ID], alone: l.models.Alone[j.Kind]}
	j.Note = n
	if n.profile.done {
		l.pool.Elsewhere(j, n.profile.start, n.profile.end)
		return
	}
	if n.profile.had {
		n.waited = n.profile.start - j.Submit
		j.Wait = n.waited
	}
	n.priority = estimate(l.models.EBM, j) * float64(j.Units)
	at := sort.Search(len(l.queue), func(i int) bool { return note(l.queue[i]).priority > n.priority })
	l.queue = slices.Insert(l.queue, at, j)
}

func note(j *Job) *lucidNote { return j.Note.(*lucidNote) } //nolint:forcetypeassert // Arrive wrote it

// Ended: the host of a guest that ended is alone again. As published the other way round does
// nothing: a guest whose host ended stays slow, and takes no guest.
func (l *lucidPolicy) Ended(j *Job) {
	host := note(j).host
	if host == nil || !host.Running() {
		note(j).shared = false
		return
	}
	note(host).shared = false
	l.pool.SetRate(host, 1)
}

func (l *lucidPolicy) Decide() float64 {
	now := l.pool.Now
	passed := sort.Search(len(l.flips), func(i int) bool { return l.flips[i] > now })
	if eager := passed%2 == 0; eager {
		l.queue = slices.DeleteFunc(l.queue, func(j *Job) bool { return l.pack(j) || l.pool.Start(j) })
	} else {
		for len(l.queue) > 0 && l.pool.Start(l.queue[0]) {
			l.queue = l.queue[1:]
		}
	}
	again := math.Inf(1)
	if len(l.queue) > 0 && passed < len(l.flips) {
		again = l.flips[passed]
	}
	return min(again, l.lend())
}

// pack puts a job on the GPUs of the first that can be its host.
func (l *lucidPolicy) pack(j *Job) bool {
	const most, memory, sharing, longer = 8, 24576, 2, 2 // GPUs; MiB of an RTX 3090; sum of scores; times the host's priority
	n := note(j)
	if j.Units > most {
		return false
	}
	for _, host := range l.pool.Running {
		h := note(host)
		if host.Units != j.Units || h.shared || !(h.alone.Memory < memory-n.alone.Memory) || h.alone.Sharing+n.alone.Sharing > sharing || n.priority > longer*h.priority {
			continue
		}
		n.shared, h.shared, n.host = true, true, host
		mine, its := rates(l.models, j.Kind, host.Kind)
		l.pool.Pack(j, host, mine, its)
		return true
	}
	return false
}

// rates are the speeds of two kinds that share their GPUs. Those of some models were not measured: they count as full.
func rates(m joblog.Models, a, b string) (float64, float64) {
	for _, kind := range []string{a, b} {
		model, _, _ := strings.Cut(kind, "/")
		if slices.Contains([]string{"NeuMF", "ResNet50", "BERT", "Transformer"}, model) {
			return 1, 1
		}
	}
	p, ok := m.Pairs[[2]string{a, b}]
	if !ok {
		q := m.Pairs[[2]string{b, a}]
		p = joblog.Pair{First: q.Second, Second: q.First}
	}
	if !(p.First > 0 && p.Second > 0) { // not measured
		return 1, 1
	}
	return p.First, p.Second
}

// lentID is the id of the node that goes to the profiler and comes back.
const lentID = 9999

// lend gives the profiler a node or takes it back when it is time, and returns when to look again.
func (l *lucidPolicy) lend() float64 {
	p, again := l.pool, math.Inf(1)
	for len(l.lends) > 0 && l.lends[0].at <= p.Now {
		if l.lends[0].more {
			l.take()
		} else if !slices.ContainsFunc(p.nodes, func(n *node) bool { return n.id == lentID }) {
			p.nodes = append(p.nodes, &node{id: lentID, free: p.PerNode})
			again = p.Now + 1
		}
		l.lends = l.lends[1:]
	}
	if len(l.lends) > 0 {
		again = min(again, l.lends[0].at)
	}
	return again
}

// take removes the idle node with the highest id. If another one is lent for that time, they swap names.
func (l *lucidPolicy) take() {
	p := l.pool
	idle := evaluate.Only(p.nodes, func(n *node) bool { return n.free == p.PerNode })
	if len(idle) == 0 {
		return
	}
	best := slices.MaxFunc(idle, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	if best.id < lentID && l.lent {
		for _, n := range p.nodes {
			if n.id == lentID {
				n.id = best.id
			}
		}
	}
	l.lent = true
	p.nodes = slices.DeleteFunc(p.nodes, func(n *node) bool { return n == best })
}

// modes are the moments at which lucid changes between eager, in which it begins, and apathetic: few jobs are to
// come in the next 50 minutes. It looks every 100 s.
func modes(forecast []joblog.Arrivals) []float64 {
	const few = 2 // jobs in ten minutes
	var flips []float64
	apathetic := false
	for i, bin := range forecast {
		mean, ok := ahead(forecast[i+1:], func(a joblog.Arrivals) float64 { return a.Jobs })
		if is := ok && mean <= few; is != apathetic {
			apathetic = is
			flips = append(flips, math.Ceil(bin.At/100)*100)
		}
	}
	return flips
}

// ahead is the mean of the first five bins.
func ahead(bins []joblog.Arrivals, value func(joblog.Arrivals) float64) (float64, bool) {
	n := min(5, len(bins))
	return tuning.Sum(bins[:n], value) / float64(n), n > 0
}

// profiled is how a job fared in the profiler.
type profiled struct {
	had, done  bool // it was profiled; it was over by then
	start, end float64
}

// lend is when the profiler takes one node more, or gives it back.
type lend struct {
	at   float64
	more bool
}

type profiler struct {
	line

	bins  []joblog.Arrivals
	lends []lend
}

// profile runs the stage before lucid: on 2 nodes, and one that is lent when many wait, each job of at most 8 GPUs
// runs 200 s, the smallest first.
func profile(ctx context.Context, in Input) (map[string]profiled, []lend, error) {
	const nodes, most = 2, 8
	stage := Input{Partitions: []Partition{{Nodes: nodes, PerNode: most, GPUs: true}}}
	stage.Log.Jobs = evaluate.Only(in.Log.Jobs, func(j joblog.Job) bool { return j.GPUs <= most })
	least := func(_ *Pool, j *Job) float64 { return float64(j.Units) }
	var policy *profiler
	r, err := Run(ctx, stage, Spec{Name: "lucid's profiler", New: whatever(func(p *Pool) Policy {
		policy = &profiler{line: line{pool: p, key: least}, bins: in.Log.Models.Arrivals}
		return policy
	})}, nil)
	if err != nil {
		return nil, nil, err
	}
	out := map[string]profiled{}
	for _, j := range r.Jobs {
		out[j.ID] = profiled{true, !j.Killed, j.First, j.End}
	}
	return out, policy.lends, nil
}

func (f *profiler) Arrive(j *Job) {
	const seconds = 200
	f.pool.SetLimit(j, seconds)
	f.line.Arrive(j)
}

func (f *profiler) Decide() float64 {
	_ = f.line.Decide()
	p := f.pool
	now, waiting, more := p.Now, len(f.queue), len(p.nodes) > p.Nodes
	const many, few, gpus, lookUp, lookDown = 10, 5, 40, 10, 100 // jobs; GPUs to come in ten minutes; seconds
	switch {
	case !more && waiting > many && math.Mod(now, lookUp) == 0:
		f.lends = append(f.lends, lend{now, true})
		p.nodes = append(p.nodes, &node{id: lentID, free: p.PerNode})
		return now + 1
	case more && waiting < few && math.Mod(now, lookDown) == 0 && p.nodes[len(p.nodes)-1].free == p.PerNode:
		i := sort.Search(len(f.bins), func(i int) bool { return f.bins[i].At > now })
		if coming, ok := ahead(f.bins[i:], func(a joblog.Arrivals) float64 { return a.GPUs }); ok && coming <= gpus {
			f.lends = append(f.lends, lend{now, false})
			p.nodes = p.nodes[:p.Nodes]
			return math.Inf(1)
		}
	}
	next := func(every float64) float64 { return math.Floor(now/every)*every + every }
	switch {
	case more:
		return next(lookDown)
	case waiting > many:
		return next(lookUp)
	}
	return math.Inf(1)
}
