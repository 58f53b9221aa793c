package gpu

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
)

// Name is "gpu".
func (*Source) Name() string { return "gpu" }

// Probe reports what the last reading has. A driver that refuses is "denied"; GPUs that
// cannot be read while others can are a separate source that does not answer.
func (s *Source) Probe(context.Context) []api.Source {
	now := s.Snapshot()
	if now.Backend == "" {
		support := api.Unsupported
		if strings.Contains(now.Why, "permission") {
			support = api.Denied
		}
		return []api.Source{{Name: "gpu/nvidia", Support: support, Reason: now.Why}}
	}
	counter := api.Source{Name: "gpu/energy", Support: api.Supported, Reason: "the driver's counter"}
	seen := api.Source{Name: "gpu/processes", Support: api.Supported, Reason: "which process is on which GPU"}
	for _, a := range now.Accounts {
		if a.Joules == nil {
			counter.Reason = "integrated from power: no counter for every GPU"
		}
		if _, hidden := a.Missing["processes"]; hidden {
			seen.Support, seen.Reason = api.Unsupported, "no processes of every GPU, so that jobs cannot be charged"
		}
	}
	out := []api.Source{{Name: "gpu/nvidia", Support: api.Supported, Reason: fmt.Sprintf("%d GPUs by %s", len(now.Accounts), now.Backend)}}
	if len(now.Missing) > 0 {
		out = append(out, api.Source{Name: "gpu/lost", Support: api.Supported, Silent: true, Reason: strings.Join(now.Missing, ", ")})
	}
	return append(out, counter, seen)
}

// Joules is what all GPUs took since the first reading, and when they were last read; false
// if nothing is known of one of them. It never falls: it includes those that are gone.
func (s *Source) Joules() (joules float64, at time.Time, known bool) {
	snap := s.Snapshot()
	if snap.Backend == "" {
		return 0, time.Time{}, false
	}
	known = !snap.lost
	for _, a := range snap.Accounts {
		known = known && (a.Joules != nil || a.Watts != nil)
	}
	return snap.used, snap.At, known
}

// Open begins to charge a job: with what its processes used since each came to a GPU. It
// does so too while there is no reading yet, as when the driver is loaded later.
func (s *Source) Open(context.Context, collector.Target) (collector.Reader, error) {
	return &reader{source: s, seen: map[int]Charge{}}, nil
}

var _ collector.Follower = (*reader)(nil)

type reader struct {
	collector.Static

	source       *Source
	used         bool           // the job was on a GPU
	seen         map[int]Charge // of its processes that the book has, when they were last read
	joules, busy float64
	partial      bool // joules lack some for good
	gapped       bool // and busy
}

// Read adds what the job's processes used since the last reading. A job that never was
// on a GPU has no such columns. While the energy of one that it is on is unknown, its
// joules are NaN; and from when they lack some until its end. So are its busy seconds.
func (r *reader) Read(_ context.Context, m collector.Moment, out collector.Values) error {
	s := r.source.Snapshot()
	if s.Backend == "" {
		return nil // no reading yet
	}
	if age := m.Time.Sub(s.At); age > Stale {
		if r.used {
			out[api.ColGPUJoules], out[api.ColGPUBusy] = math.NaN(), math.NaN() // it was on one, and what that does is unknown
		}
		return fmt.Errorf("gpu: no reading for %v: %s", age.Round(time.Second), s.Why)
	}
	for _, pid := range m.Pids { // if they cannot be listed, those that are known go on
		_, known := r.seen[pid]
		if _, charged := s.Charges[pid]; charged && !known {
			r.seen[pid], r.used = Charge{}, true
		}
	}
	if !r.used {
		return nil
	}
	var memory, devices float64
	unknown, veiled := false, false
	for pid, before := range r.seen {
		c, known := s.Charges[pid]
		if !known {
			delete(r.seen, pid) // long gone, and another process may get its number
			continue
		}
		r.joules += max(c.Joules-before.Joules, 0)
		r.busy += max(c.BusySeconds-before.BusySeconds, 0)
		memory += c.Memory
		devices += float64(c.Devices)
		unknown, r.partial = unknown || c.Unknown, r.partial || c.Partial
		veiled, r.gapped = veiled || c.Veiled, r.gapped || c.Gapped
		r.seen[pid] = c
	}
	out[api.ColGPUJoules], out[api.ColGPUBusy] = r.joules, r.busy
	if unknown || r.partial {
		out[api.ColGPUJoules] = math.NaN()
	}
	if veiled || r.gapped {
		out[api.ColGPUBusy] = math.NaN()
	}
	out[api.ColGPUMemory], out[api.ColGPUs] = memory, devices
	return nil
}
