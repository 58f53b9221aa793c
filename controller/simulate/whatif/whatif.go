package whatif

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"pitchpipe/controller/durations"
	"pitchpipe/controller/evaluate"
	"pitchpipe/controller/joblog"
	"pitchpipe/controller/simulate"
	"pitchpipe/controller/tuning"
)

// Options are what the log does not say.
type Options struct {
	Shape  simulate.Shape // Nodes 0: as many cores as jobs held at the peak
	Memory int64          // bytes of a node; 0: unknown, and no job waits for memory
	// Seconds overrides the estimate of how long a job would run without a limit, where the truth is known. It gets the
	// job's place among those that can run, and its cores. nil: estimate.
	Seconds func(job, cores int) float64
}

type way struct {
	name, policy           string
	cores, memory, packing bool
}

const (
	easy      = "easy"
	forecasts = "easy-forecast"
	recorded  = "as recorded"
	atLimit   = 0.98 // of its limit a job ran at least whose TIMEOUT was at that limit, and not at the end of a reservation or of an account's minutes
	mostMixed = 1.10 // times the seconds of a job that shares cores, at worst
)

func ways() []way {
	return []way{
		{name: "without tuning", policy: easy},
		{name: "right-size cores", policy: easy, cores: true},
		{name: "right-size memory", policy: easy, memory: true},
		{name: "forecast limits", policy: forecasts},
		{name: "packing", policy: easy, packing: true},
		{name: "all together", policy: forecasts, cores: true, memory: true, packing: true},
	}
}

// views are where within its bounds the truth may lie: 0 the best, 1 the worst. The first is the estimate,
// and the only one where durations are known.
func (w way) views(known bool) []float64 {
	if (w.cores || w.packing) && !known {
		return []float64{0.5, 0, 1}
	}
	return []float64{0.5}
}

// study is a log, its cluster and the changes of its jobs.
type study struct {
	in      simulate.Input
	perUnit float64 // bytes of memory that come with a core; +Inf: no job waits for memory
	changes []change
	options Options
}

// Study estimates. The report hears of each way.
func Study(ctx context.Context, l joblog.Log, o Options, report evaluate.Progress) (evaluate.Report, error) {
	s, assumed, err := prepare(l, o)
	if err != nil {
		return evaluate.Report{}, err
	}
	r, ways := evaluate.Report{Command: "whatif"}, ways()
	found := make([][][]outcome, len(ways)) // by view
	if err := r.Fill(ctx, len(ways), report, func(ctx context.Context, i int) (string, []evaluate.Line, error) {
		for _, view := range ways[i].views(o.Seconds != nil) {
			jobs, err := s.simulate(ctx, ways[i], view)
			if err != nil {
				return "", nil, err
			}
			found[i] = append(found[i], jobs)
		}
		return ways[i].name, nil, nil
	}); err != nil {
		return r, err
	}
	r.Rows = append(r.Rows, s.row(way{name: recorded}, nil, [][]outcome{s.recorded()}), s.row(ways[0], nil, found[0]))
	for i, w := range ways[1:] {
		r.Rows = append(r.Rows, s.row(w, found[0][0], found[i+1]))
	}
	if off := doubt(float64(r.Rows[0].Figure("mean_wait")), float64(r.Rows[1].Figure("mean_wait"))); off != "" {
		assumed = append(assumed, evaluate.Line{"about": "doubt", "assumed": off})
	}
	r.Summary = s.summary(assumed)
	return r, nil
}

// doubt says why the simulated waits deserve no trust: without tuning they are far from those in the log.
func doubt(logged, simulated float64) string {
	const far, little = 2, 60 // times; s, below which a difference does not matter
	if max(logged, simulated) <= far*min(logged, simulated)+little || math.IsNaN(logged+simulated) {
		return ""
	}
	return fmt.Sprintf("in the log a job waits %.0f s on average, in the simulation without tuning %.0f s: the log had another cluster or queue, so trust no change of waits and slowdowns; --nodes and --cores-per-node describe the cluster", logged, simulated)
}

func prepare(l joblog.Log, o Options) (study, []evaluate.Line, error) {
	s := study{options: o, perUnit: math.Inf(1)}
	shape, source := o.Shape, "as you say"
	if shape.Nodes == 0 && len(l.Clusters) == 0 {
		most := peak(l.Jobs)
		if most == 0 {
			return s, nil, fmt.Errorf("%w: the size of the cluster is unknown, and no job has a Start: want --nodes and --cores-per-node", simulate.ErrInput)
		}
		source = "as many cores as jobs held at the peak"
		shape.CoresPerNode = cmp.Or(shape.CoresPerNode, most)
		shape.Nodes = (most + shape.CoresPerNode - 1) / shape.CoresPerNode
	}
	jobs := slices.Clone(l.Jobs)
	for i := range jobs {
		jobs[i].Group = "" // one pool
	}
	l.Jobs = jobs
	var err error
	if s.in, err = simulate.Prepare(l, shape); err != nil {
		return s, nil, fmt.Errorf("%w", err)
	}
	p := s.in.Partitions[0]
	memory := "its amount is unknown: no job waits for it"
	if o.Memory > 0 {
		s.perUnit = float64(o.Memory) / float64(p.PerNode)
		memory = fmt.Sprintf("%.1f GiB a node: a job that asks for more than its cores' share blocks further cores, which count as its core-hours in all rows but the first", float64(o.Memory)/gib)
	}
	s.changes = plan(s.in.Log.Jobs)
	say := func(about, text string, values ...any) evaluate.Line {
		return evaluate.Line{"about": about, "assumed": fmt.Sprintf(text, values...)}
	}
	out := []evaluate.Line{
		say("cluster", "one pool of %d nodes with %d cores, %s; all partitions together, every node up", p.Nodes, p.PerNode, source),
		say("queue", "first come, first served with EASY backfill; no priorities, reservations, dependencies; jobs are killed at their limits"),
		say("what is known", "a job is changed by what %d runs or more of its user and name (without a name: user, cores and limit) had shown that ended before its submission", enoughRuns),
		say("cores", "its seconds lie between those of a narrow program and of Amdahl's law; changed only where it is at worst %.2f times as slow, and both confirm the saving to within %.0f %%; its limit grows as much", mostSlower, 100*(1-agreement)),
		say("memory", "%.2f times the largest seen; a job for which that is too little runs a second time in full; %s", headroom, memory),
		say("limits", "the policy easy-forecast of `pitchpipe simulate`: limits and the order of the queue by forecasts, no job is killed before its owner's limit"),
		say("packing", "jobs share nodes by %.2f times the cores that their kind keeps busy; the estimate is that they are as fast, the interval that each is up to %.2f times as slow", headroom, mostMixed),
		say("intervals", "nine of ten: users and days drawn again, the wider of both, over the best and the worst of the above; none where all jobs are of one user and one day"),
	}
	if n := len(s.in.Log.Broken) - len(l.Broken); n > 0 {
		b, _ := tuning.First(s.in.Log.Broken, func(b joblog.Broken) bool { return !slices.Contains(l.Broken, b) })
		out = slices.Insert(out, 1, say("left out", "jobs that cannot run there: %d, the first in line %d: %s", n, b.Line, b.Why))
	}
	return s, out, nil
}

// peak is how many cores jobs held at once at most.
func peak(jobs []joblog.Job) int {
	known := slices.DeleteFunc(slices.Clone(jobs), func(j joblog.Job) bool { return j.Start == 0 || j.Duration == 0 })
	now, most := 0, 0
	durations.Replay(known, func(j joblog.Job) float64 { return j.Start }, func(j joblog.Job) float64 {
		return math.Nextafter(j.Start+j.Duration, 0) // who ends makes room first
	}, func(rest []joblog.Job) {
		now += rest[0].CPUs
		most = max(most, now)
	}, func(j joblog.Job) { now -= j.CPUs })
	return most
}

// outcome is how a job went; NaN is unknown.
type outcome struct{ coreHours, gibHours, wait, slowdown float64 }

const gib, hour = 1 << 30, 3600

func (s *study) simulate(ctx context.Context, w way, view float64) ([]outcome, error) {
	jobs := make([]joblog.Job, len(s.in.Log.Jobs))
	in := simulate.Input{Log: joblog.Log{Jobs: jobs, Origin: s.in.Log.Origin}, Partitions: s.in.Partitions}
	most := in.Partitions[0].Nodes * in.Partitions[0].PerNode
	for i, j := range s.in.Log.Jobs {
		jobs[i] = s.changed(i, j, w, view, most)
	}
	specs := simulate.Specs()
	at := slices.IndexFunc(specs, func(x simulate.Spec) bool { return x.Name == w.policy })
	r, err := simulate.Run(ctx, in, specs[at], nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", w.name, err)
	}
	out := make([]outcome, len(r.Jobs))
	for i, j := range r.Jobs {
		ran := (j.End - j.First) / hour
		own := min(j.End-j.First, s.in.Log.Jobs[i].Duration) // what a way adds to it is not work of the job
		out[i] = outcome{ran * float64(j.CPUs), ran * float64(j.Memory) / gib, j.Wait, simulate.Slowdown(j.JCT()-own, own)}
	}
	return out, nil
}

// changed is the job as it would have been: its CPUs are those that it holds or blocks.
func (s *study) changed(i int, j joblog.Job, w way, view float64, most int) joblog.Job {
	c := s.changes[i]
	cores, slower, units := j.CPUs, 1.0, j.CPUs
	if w.cores && c.cores < cores {
		cores, units = c.cores, c.cores
		slower = c.fast + view*(c.slow-c.fast)
		if j.State == "TIMEOUT" && j.Limit > 0 && j.Duration >= atLimit*j.Limit { // how much it lacks is unknown
			j.Duration = math.Inf(1)
		}
		j.Limit = math.Ceil(j.Limit * c.slow)
	}
	if w.packing && c.busy < units {
		units = c.busy
		slower *= c.crowded * (1 + max(0, 2*view-1)*(mostMixed-1))
	}
	if s.options.Seconds != nil {
		j.Duration, slower = max(1, math.Round(s.options.Seconds(i, cores))), 1
	}
	j.Duration *= slower
	if w.memory {
		j.Memory = c.memory
	}
	if w.memory && c.short { // it runs twice
		j.Duration *= 2
		j.Limit *= 2
	}
	j.CPUs = min(max(units, int(math.Ceil(float64(j.Memory)/s.perUnit))), most)
	return j
}
