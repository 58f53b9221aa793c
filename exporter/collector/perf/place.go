package perf

import (
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// share is what the tally of a plan has of the counts by which energy is shared out.
func (r *reader) share(i int) collector.Place {
	var out collector.Place
	for k, e := range r.collector.plans[i].events {
		v := r.tallies[i].totals[k] / e.perUnit()
		switch e.Column {
		case api.ColTaskClock:
			out.CPUSeconds = v
		case api.PerfEvent("cycles"):
			out.Cycles = v
		case api.PerfEvent("cache-misses"):
			out.Misses = v
		}
	}
	return out
}

// put adds what one CPU counted to its package.
func (r *reader) put(cpu int, before, after collector.Place) {
	if r.places == nil {
		r.places, r.sockets = map[int]*collector.Place{}, map[int]int{}
	}
	socket, known := r.sockets[cpu]
	if !known {
		socket = r.collector.root.Package(cpu)
		r.sockets[cpu] = socket
	}
	p := r.places[socket]
	if p == nil {
		p = &collector.Place{}
		r.places[socket] = p
	}
	p.CPUSeconds += after.CPUSeconds - before.CPUSeconds
	p.Cycles += after.Cycles - before.Cycles
	p.Misses += after.Misses - before.Misses
}

// Places reports what the job did on each package. Of events whose group has not been
// counted all of the time up to now nothing is said.
func (r *reader) Places() map[int]collector.Place {
	cycles, misses := false, false
	for i, p := range r.collector.plans {
		// The tally settles what is known once a reading, in show.
		known := r.off[i] == nil && r.tallies[i].settled > 0 && r.tallies[i].settled == r.tallies[i].enabled+r.tallies[i].waiting
		for _, e := range p.events {
			cycles = cycles || known && e.Column == api.PerfEvent("cycles")
			misses = misses || known && e.Column == api.PerfEvent("cache-misses")
		}
	}
	out := make(map[int]collector.Place, len(r.places))
	for socket, p := range r.places {
		place := *p
		if !cycles {
			place.Cycles = 0
		}
		if !misses {
			place.Misses = 0
		}
		out[socket] = place
	}
	return out
}
