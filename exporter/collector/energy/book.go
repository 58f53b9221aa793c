package energy

// Joules is energy by its kind.
type Joules struct {
	Active float64 // of packages, DRAM and the machine: what the work took
	Idle   float64 // of the same: what they would have taken without work
	// DRAMActive and DRAMIdle are the DRAM's part of these two.
	DRAMActive, DRAMIdle float64
	GPU                  float64 // of graphics cards, beside both
}

// Total is all of it.
func (j Joules) Total() float64 { return j.Active + j.Idle + j.GPU }

// Plus adds.
func (j Joules) Plus(o Joules) Joules {
	return Joules{
		Active: j.Active + o.Active, Idle: j.Idle + o.Idle,
		DRAMActive: j.DRAMActive + o.DRAMActive, DRAMIdle: j.DRAMIdle + o.DRAMIdle, GPU: j.GPU + o.GPU,
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
// the jobs. What no job had is the system's. The node's joules are the sum of both, so
// that they may be a reading ahead of the cards' own count, and never behind.
func (b *Book) AddGPUs(all, jobs float64) {
	rest := all - jobs - b.ahead
	b.ahead = max(-rest, 0)
	rest = max(rest, 0)
	b.System.GPU += rest
	b.Node.GPU += rest + jobs
}
