package node

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// The kernel's USER_HZ, which is 100 on every architecture that is in use.
const ticksPerSecond = 100

// CPU is the time of all cores together since boot, in seconds, and how many they are.
type CPU struct {
	Busy  float64 // user, nice, system, interrupts; guests are part of user
	Idle  float64 // idle and waiting for IO
	Steal float64 // taken by the hypervisor
	Cores int     // that are online; 0 = not told
}

// Machine is what does not change while the exporter runs.
type Machine struct {
	Hostname    string
	CPUModel    string
	Cores       int
	MemoryBytes int64
}

// Kind is equal on machines whose profiles may be compared: normalised CPU model
// and number of cores, such as "amd-epyc-7763×64".
func (m Machine) Kind() string {
	return NormaliseModel(m.CPUModel) + "×" + strconv.Itoa(m.Cores)
}

// Node reads one machine.
type Node struct {
	root hostfs.Root
}

// New returns a reader of the machine below root.
func New(root hostfs.Root) *Node { return &Node{root: root} }

// Probe tells what can be read.
func (n *Node) Probe(context.Context) []api.Source {
	_, stat := n.CPU()
	_, load := n.Load()
	return []api.Source{
		collector.Source("node/cpu", n.root.Proc("stat"), stat),
		collector.Source("node/load", n.root.Proc("loadavg"), load),
	}
}

// Machine describes the machine. What cannot be read is left empty, except the
// cores, without which nothing can be attributed.
func (n *Node) Machine() (Machine, error) {
	var m Machine
	stat, err := hostfs.Read(n.root.Proc("stat"))
	if err != nil {
		return m, fmt.Errorf("node: %w", err)
	}
	if m.Cores, err = Cores(stat); err != nil {
		return m, err
	}
	m.CPUModel = "unknown"
	if data, err := hostfs.Read(n.root.Proc("cpuinfo")); err == nil {
		m.CPUModel = Model(data)
	}
	if data, err := hostfs.Read(n.root.Proc("meminfo")); err == nil {
		m.MemoryBytes = MemTotal(data)
	}
	if data, err := hostfs.Read(n.root.Proc("sys", "kernel", "hostname")); err == nil {
		m.Hostname = strings.TrimSpace(string(data))
	} else if name, err := os.Hostname(); err == nil {
		m.Hostname = name
	}
	return m, nil
}

// CPU reads the time that all cores spent since boot.
func (n *Node) CPU() (CPU, error) {
	data, err := hostfs.Read(n.root.Proc("stat"))
	if err != nil {
		return CPU{}, fmt.Errorf("node: %w", err)
	}
	return ParseCPU(data)
}

// Busy reads the busy time of each CPU since boot, in seconds, by its number.
func (n *Node) Busy() (map[int]float64, error) {
	data, err := hostfs.Read(n.root.Proc("stat"))
	if err != nil {
		return nil, fmt.Errorf("node: %w", err)
	}
	return ParseBusy(data)
}

// Load reads the load average of the last minute.
func (n *Node) Load() (float64, error) {
	data, err := hostfs.Read(n.root.Proc("loadavg"))
	if err != nil {
		return 0, fmt.Errorf("node: %w", err)
	}
	first, _, _ := strings.Cut(string(data), " ")
	v, err := strconv.ParseFloat(first, 64)
	if err != nil || v < 0 || math.IsNaN(v) {
		return 0, fmt.Errorf("%w: load %.40q", hostfs.ErrFormat, data)
	}
	return v, nil
}
