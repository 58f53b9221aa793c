package energy

// Joules is energy by its kind.
type Joules struct {
	Active float64 // of packages, DRAM and the machine: what the work took
	Idle   float64 // of the same: what they would have taken without work
	// DRAMActive and DRAMIdle are the DRAM's part of these two.
	DRAMActive, DRAMIdle float64
	GPU                  float64 // of graphics cards, besides both
	// Lacks means that a time is left out of which nothing is known, but for the cards' part,
	// and GPULacks the same of that.
	Lacks, GPULacks bool
}

// Total returns the sum of all parts, in joules.
func (j Joules) Total() float64 { return j.Active + j.Idle + j.GPU }

// Plus adds.
func (j Joules) Plus(o Joules) Joules {
	return Joules{
		Active: j.Active + o.Active, Idle: j.Idle + o.Idle,
		DRAMActive: j.DRAMActive + o.DRAMActive, DRAMIdle: j.DRAMIdle + o.DRAMIdle, GPU: j.GPU + o.GPU,
		Lacks: j.Lacks || o.Lacks, GPULacks: j.GPULacks || o.GPULacks,
	}
}

// Book keeps the sums since the exporter began.
type Book struct {
	Node   Joules
	System Joules

	ahead float64 // joules of graphics cards that jobs had before the node's count showed them
}

// Add enters an interval and returns the jobs' shares in the order of uses.
func (b *Book) Add(s Split, a Activity, uses []Use) []Joules {
	jobs, system := Share(s, a, uses)
	b.System = b.System.Plus(system)
	b.Node = b.Node.Plus(system)
	for _, j := range jobs {
		b.Node = b.Node.Plus(j)
	}
	return jobs
}

// AddGPUs enters what the graphics cards took in an interval, all of them and those of
// the jobs. The rest is the system's. The node's joules are the sum of both, so they may be a
// reading ahead of the cards' own count, and are never behind.
func (b *Book) AddGPUs(all, jobs float64) {
	rest := all - jobs - b.ahead
	b.ahead = max(-rest, 0)
	rest = max(rest, 0)
	b.System.GPU += rest
	b.Node.GPU += rest + jobs
}

// Load is what a job did in an interval, on one package or on all of them.
type Load struct {
	CPUSeconds float64
	Cores      float64 // allocated
	Cycles     float64 // of the cores; 0 = not counted
	Misses     float64 // of the last cache; 0 = not counted
}

// Use is what a job did in an interval.
type Use struct {
	Load
	// Packages are the same by the number of the socket; nil = unknown where it ran.
	Packages map[int]Load
}

// of is what the job did on a package. If that is unknown, the job ran everywhere alike.
func (u Use) of(pkg int, a Activity) Load {
	c, known := a.Packages[pkg]
	if pkg == Whole || !known {
		return u.Load
	}
	if u.Packages != nil {
		return u.Packages[pkg]
	}
	part := 0.0
	if a.Cores > 0 {
		part = float64(c.Count) / float64(a.Cores)
	}
	return Load{u.CPUSeconds * part, u.Cores * part, u.Cycles * part, u.Misses * part}
}

// Share splits the energy of an interval, each component of each package by itself. A job's
// share of the active part is its cycles' share on the package or, if they are not counted
// for every job, its share of the busy CPU seconds; of DRAM's, its cache misses' share if they
// are counted for every job. What runs in no job is assumed to have as many cycles and
// misses a second as the jobs there. A job's share of the idle part is that of its allocated
// cores. The rest is the system's. If the jobs' seconds or cores sum to more than there are
// (clocks of different grain, overlapping cpusets), they share what there is.
func Share(s Split, a Activity, uses []Use) (jobs []Joules, system Joules) {
	jobs = make([]Joules, len(uses))
	loads := make([]Load, len(uses))
	for _, p := range s.Parts {
		cores := a.of(p.Package)
		for i, u := range uses {
			loads[i] = u.of(p.Package, a)
		}
		active := weights(loads, cores.Busy, p.Component)
		allocated := holdings(loads, float64(cores.Count))
		activeLeft, idleLeft := p.Total-p.Idle, p.Idle
		for i := range jobs {
			j := Joules{Active: (p.Total - p.Idle) * active[i], Idle: p.Idle * allocated[i]}
			activeLeft, idleLeft = activeLeft-j.Active, idleLeft-j.Idle
			jobs[i] = jobs[i].Plus(j.as(p.Component))
		}
		// Rounding must not make the system's counter go down.
		system = system.Plus(Joules{Active: max(activeLeft, 0), Idle: max(idleLeft, 0)}.as(p.Component))
	}
	return jobs, system
}

func (j Joules) as(c Component) Joules {
	if c == DRAM {
		j.DRAMActive, j.DRAMIdle = j.Active, j.Idle
	}
	return j
}

// trifle is what a clock or a counter does not show.
const trifle = 1e-9

// weights are the shares of the jobs in the active part, which sum to at most 1, by the first
// measure that is counted for every job that ran.
func weights(loads []Load, busy float64, c Component) []float64 {
	measures := []func(Load) float64{
		func(l Load) float64 { return l.Misses },
		func(l Load) float64 { return l.Cycles },
		func(l Load) float64 { return l.CPUSeconds },
	}
	if c != DRAM {
		measures = measures[1:]
	}
	out := make([]float64, len(loads))
	for _, of := range measures {
		ran, sum, counted := 0.0, 0.0, true
		for _, l := range loads {
			if l.CPUSeconds > trifle {
				counted = counted && of(l) > trifle
				ran, sum = ran+l.CPUSeconds, sum+of(l)
			}
		}
		if ran <= trifle || !counted {
			continue
		}
		all := sum * max(busy, ran) / ran
		for i, l := range loads {
			if l.CPUSeconds > trifle {
				out[i] = of(l) / all
			}
		}
		break
	}
	return out
}

// holdings are the shares of the jobs in the idle part, which sum to at most 1.
func holdings(loads []Load, cores float64) []float64 {
	sum := 0.0
	for _, l := range loads {
		sum += max(l.Cores, 0)
	}
	out := make([]float64, len(loads))
	if all := max(cores, sum); all > 0 {
		for i, l := range loads {
			out[i] = max(l.Cores, 0) / all
		}
	}
	return out
}
