package energy

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
	// Packages are the same by the number of the socket; nil = not known where it ran.
	Packages map[int]Load
}

// of is what the job did on a package. Where it ran is taken to be everywhere alike
// where that is not known.
func (u Use) of(pkg int, a Activity) Load {
	if pkg == Whole || len(a.Packages) == 0 {
		return u.Load
	}
	c, known := a.Packages[pkg]
	if !known {
		return u.Load
	}
	if u.Packages != nil {
		return u.Packages[pkg]
	}
	part := 0.0
	if a.Cores > 0 {
		part = float64(c.Count) / float64(a.Cores)
	}
	l := u.Load
	return Load{l.CPUSeconds * part, l.Cores * part, l.Cycles * part, l.Misses * part}
}

// Share splits the energy of an interval, each component of each package by itself. Of
// the active part a job gets as much as its cycles on the package are of all, or where
// they are not counted for every job as its CPU seconds are of the busy ones; of DRAM's
// as its cache misses are, where they are counted for every job. What runs in no job
// is taken to have as many cycles and misses a second as the jobs there. Of the idle
// part a job gets as much as its allocated cores are of the package's. The rest is the
// system's. Where the jobs' seconds or cores sum to more than there are (clocks of
// different grain, overlapping cpusets), they share what there is.
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

// as says of joules that they are a component's.
func (j Joules) as(c Component) Joules {
	if c == DRAM {
		j.DRAMActive, j.DRAMIdle = j.Active, j.Idle
	}
	return j
}

// trifle is what a clock or a counter does not show.
const trifle = 1e-9

// weights are the shares of the jobs in the active part, which sum to at most 1.
func weights(loads []Load, busy float64, c Component) []float64 {
	seconds := func(l Load) float64 { return l.CPUSeconds }
	cycles := func(l Load) float64 { return l.Cycles }
	misses := func(l Load) float64 { return l.Misses }
	measures := []func(Load) float64{cycles, seconds}
	if c == DRAM {
		measures = []func(Load) float64{misses, cycles, seconds}
	}
	for _, of := range measures {
		if out, ok := weighted(loads, busy, of); ok {
			return out
		}
	}
	return make([]float64, len(loads))
}

// weighted are the shares by one measure; ok is false where it is not counted for every
// job that ran.
func weighted(loads []Load, busy float64, of func(Load) float64) (out []float64, ok bool) {
	var ran, sum float64
	for _, l := range loads {
		if l.CPUSeconds <= trifle {
			continue
		}
		if of(l) <= trifle {
			return nil, false
		}
		ran, sum = ran+l.CPUSeconds, sum+of(l)
	}
	if ran <= trifle {
		return nil, false
	}
	all := sum * max(busy, ran) / ran
	out = make([]float64, len(loads))
	for i, l := range loads {
		if l.CPUSeconds > trifle {
			out[i] = of(l) / all
		}
	}
	return out, true
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
