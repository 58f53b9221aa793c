package sampler

import (
	"cmp"
	"context"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/node"
)

// readNode reads the node; what cannot be read stays as it was.
func (s *Sampler) readNode() {
	type reading struct {
		cpu         node.CPU
		load        float64
		err, noLoad error
	}
	m, err := collector.Get(s.worker("node"), func() (m reading, _ error) {
		m.cpu, m.err = s.node.CPU()
		m.load, m.noLoad = s.node.Load()
		return m, nil
	})
	if err != nil {
		m = reading{err: err, noLoad: err}
	}
	if m.err != nil {
		s.stats.ReadErrors++
		s.cpu.PerCPU = nil
	} else {
		s.cpu = m.cpu
		s.cpu.Cores = cmp.Or(m.cpu.Cores, s.cfg.Cores)
	}
	s.cpuFault.set(s.log, m.err, "node counters")
	if m.noLoad == nil {
		s.load = m.load
	}
}

// readMeter reads the node's meter, unless an earlier reading hangs. A reading that comes too
// late is in the counters when it has come, so that the next interval has its joules.
func (s *Sampler) readMeter(ctx context.Context, now time.Time) error {
	w := s.worker("energy")
	if err := w.Stuck(); err != nil {
		return err
	}
	elapsed := time.Duration(0)
	if !s.touched.IsZero() {
		elapsed = now.Sub(s.touched)
	}
	s.touched = now
	_, err := collector.Get(w, func() (any, error) { return nil, s.meter.Read(ctx, elapsed) })
	return err
}
