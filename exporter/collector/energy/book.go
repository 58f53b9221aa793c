package energy

// Use is what a job did in an interval.
type Use struct {
	CPUSeconds float64
	Cores      float64 // allocated
}

// Joules is energy by its kind.
type Joules struct {
	Active float64
	Idle   float64
}

// Total is active and idle.
func (j Joules) Total() float64 { return j.Active + j.Idle }

func (j Joules) plus(o Joules) Joules { return Joules{j.Active + o.Active, j.Idle + o.Idle} }

// Share splits the energy of an interval. A job gets of the active part as much as
// its CPU seconds are of the node's busy ones, and of the idle part as much as its
// allocated cores are of the node's; the rest is the system's. Where the jobs'
// seconds or cores sum to more than the node's (clocks of different grain,
// overlapping cpusets), they share what there is.
func Share(s Split, a Activity, uses []Use) (jobs []Joules, system Joules) {
	busy, cores := a.Busy, float64(a.Cores)
	var sumCPU, sumCores float64
	for _, u := range uses {
		sumCPU += max(u.CPUSeconds, 0)
		sumCores += max(u.Cores, 0)
	}
	busy, cores = max(busy, sumCPU), max(cores, sumCores)
	jobs = make([]Joules, len(uses))
	system = Joules{Active: s.Active(), Idle: s.Idle}
	for i, u := range uses {
		if busy > 0 {
			jobs[i].Active = s.Active() * max(u.CPUSeconds, 0) / busy
		}
		if cores > 0 {
			jobs[i].Idle = s.Idle * max(u.Cores, 0) / cores
		}
		system.Active -= jobs[i].Active
		system.Idle -= jobs[i].Idle
	}
	// Rounding must not make the system's counter go down.
	system.Active, system.Idle = max(system.Active, 0), max(system.Idle, 0)
	return jobs, system
}

// Book keeps the sums since the exporter began.
type Book struct {
	Node   Joules
	System Joules
}

// Add enters an interval and returns the jobs' shares in the order of uses.
func (b *Book) Add(s Split, a Activity, uses []Use) []Joules {
	jobs, system := Share(s, a, uses)
	b.Node = b.Node.plus(Joules{s.Active(), s.Idle})
	b.System = b.System.plus(system)
	return jobs
}
