package sampler

import "pitchpipe/exporter/collector/node"

// machine is one reading of the node.
type machine struct {
	cpu         node.CPU
	load        float64
	err, noLoad error
}

// readNode reads the node; what cannot be read stays as it was.
func (s *Sampler) readNode() {
	m := new(machine)
	if err := s.worker("node").Do(func() {
		m.cpu, m.err = s.node.CPU()
		m.load, m.noLoad = s.node.Load()
	}); err != nil {
		m = &machine{err: err, noLoad: err}
	}
	text := ""
	if m.err != nil {
		text = m.err.Error()
		s.stats.ReadErrors++
		s.cpu.PerCPU = nil
	} else {
		s.cpu = m.cpu
	}
	if text != s.cpuErr {
		s.log.Warn("node counters changed state", "err", text)
		s.cpuErr = text
	}
	if m.noLoad == nil {
		s.load = m.load
	}
}

// busy is the time of the node's cores at this moment, where it can be read.
func (s *Sampler) busy() (node.CPU, bool) {
	m := new(machine)
	if s.worker("node").Do(func() { m.cpu, m.err = s.node.CPU() }) != nil || m.err != nil {
		return node.CPU{}, false
	}
	return m.cpu, true
}
