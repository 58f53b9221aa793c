package sampler

import "pitchpipe/exporter/collector/node"

// machine is one reading of the node.
type machine struct {
	cpu         node.CPU
	load        float64
	cpus        map[int]float64 // busy seconds by CPU; nil = not known, or not needed
	err, noLoad error
}

func (s *Sampler) readNode() {
	m := s.readMachine()
	text := ""
	if m.err != nil {
		text = m.err.Error()
		s.stats.ReadErrors++
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
	s.cpus = m.cpus
}

func (s *Sampler) readMachine() machine {
	m, several := new(machine), len(s.ledger.sockets.pkgs) > 1
	err := s.lane("node").do(func() {
		m.cpu, m.err = s.node.CPU()
		m.load, m.noLoad = s.node.Load()
		if r, ok := s.node.(CoreReader); ok && several {
			if cpus, err := r.Busy(); err == nil { // else the packages are taken to be alike
				m.cpus = cpus
			}
		}
	})
	if err != nil {
		return machine{err: err, noLoad: err}
	}
	return *m
}

// busy is the time of the node's cores at this moment, where it can be read.
func (s *Sampler) busy() (node.CPU, bool) {
	m := new(machine)
	if s.lane("node").do(func() { m.cpu, m.err = s.node.CPU() }) != nil || m.err != nil {
		return node.CPU{}, false
	}
	return m.cpu, true
}
