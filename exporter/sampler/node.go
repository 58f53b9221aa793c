package sampler

import (
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/collector/node"
)

// machine is one reading of the node.
type machine struct {
	cpu         node.CPU
	load        float64
	err, noLoad error
}

// readNode reads the node; what cannot be read stays as it was.
func (s *Sampler) readNode() {
	m, err := collector.Get(s.worker("node"), func() (m machine, _ error) {
		m.cpu, m.err = s.node.CPU()
		m.load, m.noLoad = s.node.Load()
		return m, nil
	})
	if err != nil {
		m = machine{err: err, noLoad: err}
	}
	if m.err != nil {
		s.stats.ReadErrors++
		s.cpu.PerCPU = nil
	} else {
		s.cpu = m.cpu
	}
	s.cpuFault.set(m.err)
	s.cpuFault.log(s.log, "node counters")
	if m.noLoad == nil {
		s.load = m.load
	}
}

// busy is the time of the node's cores at this moment, where it can be read.
func (s *Sampler) busy() (node.CPU, bool) {
	cpu, err := collector.Get(s.worker("node"), s.node.CPU)
	return cpu, err == nil
}
