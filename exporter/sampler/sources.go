package sampler

import (
	"context"
	"time"

	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/energy"
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
	}
	s.cpuFault.set(s.log, m.err, "node counters")
	if m.noLoad == nil {
		s.load = m.load
	}
}

// meter reads the node's meter on a worker of its own. A reading that comes too late is in
// the counters when it has come, so that the next interval has its joules.
type meter struct {
	energy.Meter
	worker  *collector.Worker
	touched time.Time // when it was last read
}

// read reads the meter, unless an earlier reading hangs.
func (m *meter) read(ctx context.Context, now time.Time) error {
	if err := m.worker.Stuck(); err != nil {
		return err
	}
	elapsed := time.Duration(0)
	if !m.touched.IsZero() {
		elapsed = now.Sub(m.touched)
	}
	m.touched = now
	_, err := collector.Get(m.worker, func() (any, error) { return nil, m.Read(ctx, elapsed) })
	return err
}
