package sampler

import (
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
)

// charged is what a job was charged for up to the last interval.
type charged struct {
	cpu    float64 // CPU seconds
	gpu    float64 // joules of graphics cards, as their reader counts
	places map[int]collector.Place
	lost   bool  // where it had worked was not known then
	rates  rates // of the intervals in which it ran
}

// use is what the job did since it was last charged; from is when that was.
func (j *job) use(from, now time.Time) energy.Use {
	u := energy.Use{Load: energy.Load{CPUSeconds: max(j.values[api.ColCPUSeconds]-j.charged.cpu, 0)}}
	span := now.Sub(from).Seconds()
	if span <= 0 {
		return u
	}
	end := now
	if j.gone {
		end = j.goneAt
	}
	present := max(end.Sub(later(from, j.first)).Seconds(), 0)
	if cores, ok := j.values[api.ColAllocatedCores]; ok {
		u.Cores = cores * min(present/span, 1)
	} else {
		u.Cores = u.CPUSeconds / span // the cores that it used
	}
	return u
}

// places is what the job did on each package, where a reader knows that.
func (j *job) places() map[int]collector.Place {
	for _, n := range j.readers {
		if p, ok := n.reader.(collector.Placed); ok && n.worker.Stuck() == nil {
			return p.Places()
		}
	}
	return nil
}

// located adds where the job worked, and the events that its energy is shared out by.
// Its CPU seconds are divided among the packages as a reader saw them on each, else as
// the CPUs that it may use were busy; its cores as its cpuset lies, else as its CPU seconds.
func (j *job) located(u energy.Use, s sockets) energy.Use {
	now := j.places()
	if j.charged.lost {
		now = nil // it counts from whenever
	}
	seconds, sum := map[int]float64{}, 0.0
	cycled, missed := true, true // on every package where it ran
	for pkg, p := range now {
		was := j.charged.places[pkg]
		seconds[pkg] = growth(was.CPUSeconds, p.CPUSeconds)
		sum += seconds[pkg]
		cycles, misses := events(was, p)
		u.Cycles, u.Misses = u.Cycles+cycles, u.Misses+misses
		cycled = cycled && (seconds[pkg] == 0 || cycles > 0)
		missed = missed && (seconds[pkg] == 0 || misses > 0)
	}
	if !cycled { // a part of them would be less than the truth
		u.Cycles = 0
	}
	if !missed {
		u.Misses = 0
	}
	if len(s.pkgs) < 2 || s.did == nil { // nothing to tell apart
		return u
	}
	allowed := slices.Values(j.cpus)
	held, holding := s.sum(allowed, func(int) float64 { return 1 })
	if len(j.cpus) == 0 {
		allowed = maps.Keys(s.of)
	}
	if sum <= 0 {
		seconds, sum = s.sum(allowed, func(cpu int) float64 { return s.did[cpu] })
	}
	u.Packages = make(map[int]energy.Load, len(s.pkgs))
	for _, pkg := range s.pkgs {
		share := 1 / float64(len(s.pkgs))
		if sum > 0 {
			share = seconds[pkg] / sum
		}
		l := energy.Load{CPUSeconds: u.CPUSeconds * share, Cores: u.Cores * share}
		if holding > 0 {
			l.Cores = u.Cores * held[pkg] / holding
		}
		l.Cycles, l.Misses = events(j.charged.places[pkg], now[pkg])
		u.Packages[pkg] = l
	}
	return u
}

// events is how much the counts of a place grew; 0 where one is not known at both ends.
func events(was, now collector.Place) (cycles, misses float64) {
	known := func(was, wasSeconds, now float64) float64 {
		if was == 0 && wasSeconds > 0 {
			return 0 // it was not known then
		}
		return growth(was, now)
	}
	return known(was.Cycles, was.CPUSeconds, now.Cycles), known(was.Misses, was.CPUSeconds, now.Misses)
}

// pendingGPU is what graphics cards took for the job since it was last charged.
func (j *job) pendingGPU() float64 {
	if now, ok := j.values[api.ColGPUJoules]; ok {
		return growth(j.charged.gpu, now)
	}
	return 0
}

func (j *job) charge(joules energy.Joules, u energy.Use, elapsed time.Duration) {
	j.joules = j.joules.Plus(joules)
	if held := u.Cores * elapsed.Seconds(); u.CPUSeconds > 0 && held > 0 {
		j.charged.rates.add(joules.Active, u.CPUSeconds, joules.Idle, held)
	}
	j.settled()
}

// settled means that what the job did so far is charged, or no job's.
func (j *job) settled() {
	j.charged.cpu = j.values[api.ColCPUSeconds]
	if v, ok := j.values[api.ColGPUJoules]; ok && !math.IsNaN(v) {
		j.charged.gpu = v
	}
	j.charged.places = j.places()
	j.charged.lost = j.charged.places == nil
}

// source is what the sum of a job's joules may claim to be: modelled where a part is that was
// counted before.
func (s *Sampler) source(j *job) string {
	if j.was.Source == energy.Modelled {
		return energy.Modelled
	}
	return s.meter.Source()
}

// kept is what a later exporter, or start of the job, goes on from: what the cards took while they
// were not known it will not learn.
func (j *job) kept() energy.Joules {
	return j.joules.Plus(energy.Joules{GPULacks: math.IsNaN(j.values[api.ColGPUJoules])})
}

// addEnergy puts the joules into a sample. While those of the job's graphics cards are
// not known neither is the sum, which would lack them; nor is one that lacks some for good.
func (j *job) addEnergy(out collector.Values, joules float64) {
	out[api.ColJoules] = joules
	cards, ok := j.values[api.ColGPUJoules]
	switch {
	case j.joules.GPULacks, ok && (math.IsNaN(cards) || !j.fresh[api.ColGPUJoules] && !j.gone):
		out[api.ColJoules], out[api.ColGPUJoules] = math.NaN(), math.NaN()
	case ok:
		out[api.ColGPUJoules] = j.joules.GPU + j.pendingGPU()
	}
	if j.joules.Lacks {
		out[api.ColJoules] = math.NaN()
	}
}

// sockets knows which CPUs are in which package, and what each did.
type sockets struct {
	of   map[int]int     // package of each CPU
	last map[int]float64 // busy seconds by CPU when the last interval was settled
	did  map[int]float64 // in the interval that is being settled
	pkgs []int
}

// interval is what each package did since the last one was closed; nil where there is
// one package, or what CPUs did is not known.
func (s *sockets) interval(cpus map[int]float64) map[int]energy.Cores {
	s.did = nil
	if len(s.pkgs) < 2 || cpus == nil || s.last == nil {
		return nil
	}
	s.did = make(map[int]float64, len(cpus))
	out := map[int]energy.Cores{}
	for cpu, busy := range cpus {
		pkg, known := s.of[cpu]
		if !known {
			continue // it came after the exporter began
		}
		c := out[pkg]
		c.Count++
		if before, there := s.last[cpu]; there {
			s.did[cpu] = max(busy-before, 0)
			c.Busy += s.did[cpu]
		}
		out[pkg] = c
	}
	return out
}

// sum adds up a weight of CPUs, by package and in all.
func (s sockets) sum(cpus iter.Seq[int], weight func(cpu int) float64) (map[int]float64, float64) {
	out, sum := map[int]float64{}, 0.0
	for cpu := range cpus {
		if pkg, ok := s.of[cpu]; ok {
			out[pkg] += weight(cpu)
			sum += weight(cpu)
		}
	}
	return out, sum
}
