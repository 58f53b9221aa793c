package sampler

import (
	"maps"
	"slices"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/node"
)

// Snapshot is the state of the node after a tick.
type Snapshot struct {
	CPU       node.CPU
	Load      float64
	Book      energy.Book
	Source    string
	Base      energy.Component // what the meter counts besides DRAM
	Idle      []energy.Calibration
	Zones     []energy.Zone // of the meter, where it has some
	IdleWatts float64
	IdleBasis string
	Stats     Stats
	Running   int
	Users     []UserJoules
	Covered   float64   // seconds whose energy was charged
	At        time.Time // of the tick
	State     State     // what the next exporter would have to know
	// Silent are the sources that do not answer, by the names of their collectors, and the
	// meter in use by its whole name where it fails; the reason says since when, or why.
	Silent []api.Source
}

// Mute returns sources with what does not answer at this moment.
func (s *Snapshot) Mute(sources []api.Source) []api.Source {
	out := slices.Clone(sources)
	for i, source := range out {
		kind, _, _ := strings.Cut(source.Name, "/")
		at := slices.IndexFunc(s.Silent, func(m api.Source) bool { return m.Name == kind || m.Name == source.Name })
		if at >= 0 && source.Support == api.Supported {
			out[i].Silent, out[i].Reason = true, s.Silent[at].Reason
		}
	}
	return out
}

func (s *Sampler) publish(at time.Time) {
	snap := *s.Snapshot() // what a meter that hangs last answered stays
	snap.CPU, snap.Load, snap.Book, snap.Stats, snap.Covered = s.cpu, s.load, s.ledger.book, s.stats, s.ledger.covered
	snap.Silent, snap.Users, snap.At, snap.Running = s.silent(), s.userJoules(), at, len(s.jobs)
	maps.DeleteFunc(s.ended, func(key attrib.Key, _ *reportLog) bool {
		a, there := s.store.Attempt(key)
		return !there || !a.Job.Ended
	})
	if s.worker("energy").Stuck() == nil {
		snap.Idle, snap.Zones = s.meter.Calibrations(), s.meter.Zones()
		snap.IdleWatts, snap.IdleBasis = s.meter.IdleWatts()
	}
	if s.cfg.Keep {
		snap.State = s.state(at, s.store.Latest())
		snap.State.Idle = snap.Idle
	}
	s.writeJournal(snap.State)
	s.snapshot.Store(&snap)
}

func (s *Sampler) worker(name string) *collector.Worker {
	w := s.workers[name]
	if w == nil {
		w = collector.NewWorker(name)
		s.workers[name] = w
	}
	return w
}

// silent lists the sources that do not answer, and the meter in use where it fails; it logs
// each change once.
func (s *Sampler) silent() []api.Source {
	var out []api.Source
	add := func(name, reason string) {
		out = append(out, api.Source{Name: name, Support: api.Supported, Silent: true, Reason: reason})
	}
	for _, name := range slices.Sorted(maps.Keys(s.workers)) {
		err := s.workers[name].Stuck()
		f := s.mute[name]
		f.set(s.log, err, name)
		s.mute[name] = f
		if err != nil {
			add(name, strings.TrimPrefix(err.Error(), name+": "))
		}
	}
	if why := s.ledger.fault; why != "" && s.worker("energy").Stuck() == nil {
		add("energy/"+s.meter.Source(), string(why))
	}
	return out
}
