package site

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"pitchpipe/controller/joblog"
)

// Options are how large a site is.
type Options struct {
	Nodes, CoresPerNode int
	Days                int
	Load                float64 // share of the core-seconds that the jobs would use if none had to wait
	Users               int
}

// Month is a site of 40 nodes with 32 cores whose users ask for 85 % of it for four weeks.
func Month() Options { return Options{Nodes: 40, CoresPerNode: 32, Days: 28, Load: 0.85, Users: 40} }

// Job is a line of the log with what the log does not show.
type Job struct {
	joblog.Job

	Work     float64 // core-seconds of a whole run
	Parallel float64 // share of the work that runs on several cores
	Width    int     // on how many of them at most
	Done     float64 // share of the work after which it ends: below 1 where it fails
}

// Seconds is how long the job would run on so many cores without a limit.
func (j Job) Seconds(cores int) float64 {
	return j.Done * j.Work * (1 - j.Parallel + j.Parallel/float64(min(cores, j.Width)))
}

// program is what a user runs repeatedly.
type program struct {
	user, name     string
	numbered       bool // each run has a number at the end of its name
	cores, width   int
	parallel       float64
	median, sigma  float64 // seconds of a run, logarithmic standard deviation
	limit          float64
	asked, touched float64 // bytes of memory for each core
	weight         float64
}

// Draw draws the jobs of a site.
func Draw(seed uint64, o Options) []Job {
	r := rand.New(rand.NewPCG(seed, 18)) //nolint:gosec // no secret
	programs := o.programs(r)
	demand := o.Load * float64(o.Nodes*o.CoresPerNode) * float64(o.Days) * 86400
	var jobs []Job
	for demand > 0 {
		p := programs[pick(r, programs)]
		at := o.arrival(r)
		for range 1 + int(r.ExpFloat64()*3) { // a session
			j := p.run(r, at, len(jobs))
			jobs = append(jobs, j)
			demand -= j.Duration * float64(j.CPUs)
			at += r.ExpFloat64() * 300
		}
	}
	slices.SortStableFunc(jobs, func(a, b Job) int { return int(a.Submit - b.Submit) })
	for i := range jobs {
		jobs[i].Line, jobs[i].ID = i+1, fmt.Sprint(i+1)
	}
	return jobs
}

func (o Options) programs(r *rand.Rand) []program {
	menu := []float64{900, 1800, 3600, 2 * 3600, 4 * 3600, 8 * 3600, 12 * 3600, 24 * 3600, 48 * 3600}
	most := menu[len(menu)-1]
	var out []program
	for u := range o.Users {
		n := 1 + r.IntN(5)
		for a := range n {
			p := program{
				user: fmt.Sprintf("user%02d", u+1), name: fmt.Sprintf("app%d%c", u+1, 'a'+a), numbered: r.Float64() < 0.3,
				cores: min(1<<r.IntN(8), o.CoresPerNode*o.Nodes/4), parallel: 0.98 + 0.02*r.Float64(),
				median: math.Exp(math.Log(2400) + 1.5*r.NormFloat64()), sigma: []float64{0.1, 0.4, 0.8}[r.IntN(3)],
				asked: float64(int64(2) << 30), weight: 1 / float64(u+1) / float64(n),
			}
			p.width, p.touched = p.cores, p.asked*(0.05+0.9*r.Float64())
			switch x := r.Float64(); {
			case x < 0.15:
				p.width = 1 + r.IntN(p.cores)
			case x < 0.3:
				p.parallel = 0.5 + 0.45*r.Float64()
			}
			p.median = min(p.median, most/4)
			p.limit = most
			if x := r.Float64(); x > 0.2 { // some programs, now and then, need more than their users ask for
				need := p.median * math.Exp(1.6*p.sigma) * []float64{1, 1.2, 2, 5}[r.IntN(4)]
				if x < 0.3 {
					need = p.median
				}
				if i := slices.IndexFunc(menu, func(v float64) bool { return v >= need }); i >= 0 {
					p.limit = menu[i]
				}
			}
			out = append(out, p)
		}
	}
	return out
}

func pick(r *rand.Rand, programs []program) int {
	sum := 0.0
	for _, p := range programs {
		sum += p.weight
	}
	x := r.Float64() * sum
	return max(0, slices.IndexFunc(programs, func(p program) bool { x -= p.weight; return x < 0 }))
}

// arrival is a second of the site's days: three times as likely at noon as at midnight, a third as likely at weekends.
func (o Options) arrival(r *rand.Rand) float64 {
	for {
		at := r.Float64() * float64(o.Days) * 86400
		busy := (2 - math.Cos(at/86400*2*math.Pi)) / 3
		if int(at/86400)%7 >= 5 {
			busy /= 3
		}
		if r.Float64() < busy {
			return math.Floor(at)
		}
	}
}

func (p program) run(r *rand.Rand, at float64, n int) Job {
	j := Job{Parallel: p.parallel, Width: p.width, Done: 1}
	speed := 1 / (1 - p.parallel + p.parallel/float64(p.width))
	j.Work = p.median * math.Exp(p.sigma*r.NormFloat64()) * speed
	if r.Float64() < 0.08 {
		j.Done = 0.1 * r.Float64()
	}
	seconds, state := max(1, math.Round(j.Seconds(p.cores))), "COMPLETED"
	if j.Done < 1 {
		state = "FAILED"
	}
	if seconds > p.limit {
		seconds, state = p.limit, "TIMEOUT"
	}
	name := p.name
	if p.numbered {
		name = fmt.Sprintf("%s-%d", name, n)
	}
	j.Job = joblog.Job{
		User: p.user, Group: "batch", Account: "all", Name: name, State: state,
		Submit: math.Floor(at), Duration: seconds, Limit: p.limit, Nodes: 1, CPUs: p.cores,
		Memory: int64(p.asked) * int64(p.cores), MemoryUsed: int64(p.touched * float64(p.cores) * (0.9 + 0.1*r.Float64())),
		CPUSeconds: seconds * speed,
	}
	return j
}
