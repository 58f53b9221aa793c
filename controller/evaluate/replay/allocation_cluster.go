package replay

import (
	"cmp"
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/allocate"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/tuning"
)

const (
	askAgain   = 300.0  // seconds after which a policy is asked again where nothing happens
	probation  = 60.0   // seconds of work, or an epoch, that show how fast a size is
	blind      = 3600.0 // seconds that a job is taken to last at what it asks for, while nothing is known of its kind
	speedNoise = 0.03   // standard deviation of a measured speed, as a share
	reach      = 2      // times the most units, or the largest batch, measured of its kind: farther a job may not go
)

// divider is a policy: it decides which size each job has.
type divider struct {
	name    string
	elastic bool // else a job has what it asked for
	batch   bool // it may change the batch
	choose  func(jobs []allocate.Job) []int
}

// dividers returns ours first.
func dividers() []divider {
	always := func(rank float64) func(allocate.Job) float64 { return func(allocate.Job) float64 { return rank } }
	filling := func(v allocate.Value) func([]allocate.Job) []int { // each its smallest size in the order of arrival, and then more
		return func(jobs []allocate.Job) []int { return allocate.Fill(jobs, allocate.Admit(jobs, false, always(0)), v) }
	}
	return []divider{
		{"pitchpipe", true, false, allocate.Choose},
		{"pitchpipe-with-batch", true, true, allocate.Choose},
		{"optimus", true, false, filling(allocate.Optimus)},
		{"drf", true, false, filling(allocate.Equal)},
		{"tetris", false, false, func(jobs []allocate.Job) []int { return allocate.Admit(jobs, true, tetris(jobs)) }},
		{"fcfs", false, false, func(jobs []allocate.Job) []int { return allocate.Admit(jobs, true, always(-1)) }},
	}
}

// tetris packs: first comes the job with the largest demand, and with little left to do
// (Grandl et al., "Multi-resource packing for cluster schedulers", SIGCOMM 2014, sections 3.2 and 3.3).
func tetris(jobs []allocate.Job) (rank func(allocate.Job) float64) {
	work := func(j allocate.Job) float64 { return j.Sizes[0].Need[0] * j.Left / j.Sizes[0].Speed }
	needs := tuning.Sum(jobs, func(j allocate.Job) float64 { return j.Sizes[0].Need[0] })
	works := tuning.Sum(jobs, work)
	return func(j allocate.Job) float64 { return 1 - j.Sizes[0].Need[0] + work(j)*needs/works }
}

type running struct {
	kind *kind
	asks int     // the size that its owner asks for
	at   float64 // when it arrives

	left  float64 // share of the work
	size  int     // index into the kind's; allocate.Waits
	ready float64 // it works from then on
}

func (r *running) now() sized { return r.kind.sizes[r.size] }

// shows is when the speed of its size is known.
func (r *running) shows() float64 { return r.ready + min(r.now().epoch, probation) }

type cluster struct {
	AllocationInput

	policy divider
	now    float64
	live   []*running
	known  map[*kind]*lesson

	ended, waited, longest, restarts, used float64 // in all
}

// play lets the jobs arrive, and returns what came of them; nothing of use where the context ends before.
func (in AllocationInput) play(ctx context.Context, p divider, jobs []running, seed uint64) evaluate.Line {
	luck := rand.New(rand.NewPCG(seed, 2)) //nolint:gosec // a simulation
	w := &cluster{AllocationInput: in, policy: p, known: map[*kind]*lesson{}}
	for _, j := range jobs {
		if w.known[j.kind] == nil {
			w.known[j.kind] = newLesson(j.kind)
		}
	}
	for next := 0; ctx.Err() == nil && (next < len(jobs) || len(w.live) > 0); {
		at := w.now + askAgain
		if next < len(jobs) {
			at = min(at, jobs[next].at)
		}
		for _, r := range w.live {
			if r.size == allocate.Waits {
				continue
			}
			at = min(at, max(w.now, r.ready)+r.left*r.now().seconds)
			if r.shows() > w.now && w.known[r.kind].steps[r.size] == 0 {
				at = min(at, r.shows())
			}
		}
		w.forward(at, luck)
		for ; next < len(jobs) && jobs[next].at <= at; next++ {
			w.live = append(w.live, new(jobs[next]))
		}
		w.assign()
	}
	n, span := float64(len(jobs)), w.now-jobs[0].at
	return evaluate.Line{
		"mean_jct": evaluate.Figure(w.ended / n), "makespan": evaluate.Figure(span), "mean_wait": evaluate.Figure(w.waited / n),
		"longest_wait": evaluate.Figure(w.longest), "restarts": evaluate.Figure(w.restarts), "utilisation": evaluate.Figure(w.used / span / float64(in.Units)),
	}
}

// forward lets the jobs work until then, when some may end.
func (w *cluster) forward(at float64, luck *rand.Rand) {
	for _, r := range w.live {
		if r.size == allocate.Waits {
			continue
		}
		m, l := r.now(), w.known[r.kind]
		r.left -= max(0, at-max(w.now, r.ready)) / m.seconds
		w.used += (at - w.now) * float64(m.units)
		if at >= r.shows() && l.steps[r.size] == 0 {
			l.learn(r.size, m, m.step*math.Exp(speedNoise*luck.NormFloat64()))
		}
	}
	w.now = at
	w.live = slices.DeleteFunc(w.live, func(r *running) bool {
		if r.left > 1e-9 {
			return false
		}
		w.ended += at - r.at
		return true
	})
}

// assign asks the policy and changes the jobs.
func (w *cluster) assign() {
	jobs, sizes := make([]allocate.Job, len(w.live)), make([][]int, len(w.live))
	for i, r := range w.live {
		jobs[i], sizes[i] = w.view(r)
	}
	for i, size := range w.policy.choose(jobs) {
		r := w.live[i]
		switch {
		case size == jobs[i].Has:
			continue
		case r.size == allocate.Waits:
			w.waited, w.longest = w.waited+w.now-r.at, max(w.longest, w.now-r.at)
			r.ready = w.now
		default:
			w.restarts++
			r.ready = w.now + w.Restart
		}
		r.size = sizes[i][size]
	}
}

// view is a job as a policy may see it, and the sizes of its kind that these are: of each number of units
// the fastest, and the one that it has.
func (w *cluster) view(r *running) (allocate.Job, []int) {
	own, l := r.kind.sizes[r.asks], w.known[r.kind]
	seconds, best := l.seconds(own), map[int]int{}
	for s, m := range r.kind.sizes {
		far := !w.policy.elastic || m.units > max(reach*l.units, own.units) || m.batch != own.batch && (!w.policy.batch || m.batch > reach*l.batch)
		if old, ok := best[m.units]; (s == r.asks || !far) && (!ok || seconds[s] < seconds[old]) {
			best[m.units] = s
		}
	}
	if r.size != allocate.Waits {
		best[-1] = r.size
	}
	sizes := slices.Compact(slices.SortedFunc(maps.Values(best), func(a, b int) int {
		return cmp.Or(cmp.Compare(r.kind.sizes[a].units, r.kind.sizes[b].units), cmp.Compare(seconds[b], seconds[a]), cmp.Compare(a, b))
	}))
	j := allocate.Job{Has: slices.Index(sizes, r.size), Left: r.left * own.seconds / own.epoch, Restart: w.Restart}
	if r.size == allocate.Waits {
		j.Waited = w.now - r.at
	}
	for _, s := range sizes {
		j.Sizes = append(j.Sizes, allocate.Size{Need: []float64{float64(r.kind.sizes[s].units) / float64(w.Units)}, Speed: 1 / seconds[s]})
	}
	return j, sizes
}

// lesson is what was measured of a kind.
type lesson struct {
	kind     *kind
	steps    map[int]float64     // seconds of a step by size
	epochs   map[float64]float64 // steps of an epoch by batch
	units    int                 // the most measured
	batch    float64             // the largest measured
	forecast []float64           // seconds of an epoch by size, as last made; nil: make it again
}

// newLesson knows what an epoch is defined as: one pass over the data at the smallest batch.
func newLesson(k *kind) *lesson {
	first := slices.MinFunc(k.sizes, func(a, b sized) int { return cmp.Compare(a.batch, b.batch) })
	return &lesson{kind: k, steps: map[int]float64{}, epochs: map[float64]float64{first.batch: first.epoch / first.step}}
}

func (l *lesson) learn(size int, m sized, step float64) {
	l.steps[size], l.epochs[m.batch], l.forecast = step, m.epoch/m.step, nil
	l.units, l.batch = max(l.units, m.units), max(l.batch, m.batch)
}

// seconds are those of an epoch by size: measured, forecast from what was measured, or, while nothing
// was, in proportion to the units. Beyond the most units measured it hopes for that proportion, so that more are tried.
func (l *lesson) seconds(own sized) []float64 {
	if l.forecast != nil {
		return l.forecast
	}
	out := make([]float64, len(l.kind.sizes))
	for s, m := range l.kind.sizes {
		out[s] = blind * own.epoch / own.seconds * float64(own.units) / float64(m.units)
	}
	estimates, err := l.kind.space.Forecast(l.steps)
	if err != nil { // nothing was measured
		return out
	}
	for s, m := range l.kind.sizes {
		out[s] = estimates[s] * l.stepsAt(m.batch)
	}
	for s, m := range l.kind.sizes {
		for f, from := range l.kind.sizes {
			if from.batch == m.batch && from.units <= l.units && l.units < m.units {
				out[s] = min(out[s], out[f]*float64(from.units)/float64(m.units))
			}
		}
	}
	l.forecast = out
	return out
}

// stepsAt is how many steps an epoch takes with a batch: its samples grow linearly with the batch, as the
// noise of the gradient lets them (McCandlish et al., "An empirical model of large-batch training", 2018, section 2.2).
func (l *lesson) stepsAt(batch float64) float64 {
	known := slices.Sorted(maps.Keys(l.epochs))
	if len(known) == 1 { // none is measured but the smallest, or there are no batches
		return l.epochs[known[0]] * max(known[0], 1) / max(batch, 1)
	}
	i, _ := slices.BinarySearch(known, batch)
	i = min(max(i, 1), len(known)-1)
	low, high := known[i-1], known[i]
	from, to := l.epochs[low]*low, l.epochs[high]*high
	return max(from, from+(to-from)*(batch-low)/(high-low)) / batch
}
