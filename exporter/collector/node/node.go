package node

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/prometheus/procfs"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector"
	"pitchpipe/exporter/hostfs"
)

// CPU is the time of all cores together since boot, in seconds.
type CPU struct {
	Busy   float64         // user, nice, system, interrupts; guests are part of user
	Steal  float64         // taken by the hypervisor
	Cores  int             // that are online; 0 = unknown
	PerCPU map[int]float64 // busy time by the number of the CPU
}

// Node reads one machine.
type Node struct {
	root hostfs.Root
}

// New returns a reader of the machine below root.
func New(root hostfs.Root) *Node { return &Node{root: root} }

// Probe reports what can be read.
func (n *Node) Probe(context.Context) []api.Source {
	_, stat := n.CPU()
	_, load := n.Load()
	return []api.Source{
		collector.Source("node/cpu", n.root.Proc("stat"), stat),
		collector.Source("node/load", n.root.Proc("loadavg"), load),
	}
}

// Machine describes the machine. What cannot be read is left empty, except the
// cores, without which nothing can be attributed. Its kind is the normalised CPU model and the
// number of cores, such as "amd-epyc-7763×64".
func (n *Node) Machine() (m api.Node, _ error) {
	cpu, err := n.CPU()
	if err != nil {
		return m, err
	}
	if m.Cores = cpu.Cores; m.Cores == 0 {
		return m, fmt.Errorf("node: %w: no cores in /proc/stat", hostfs.ErrFormat)
	}
	m.CPUModel = "unknown"
	if data, err := hostfs.Read(n.root.Proc("cpuinfo")); err == nil {
		m.CPUModel = Model(data)
	}
	m.MachineKind = NormaliseModel(m.CPUModel) + "×" + strconv.Itoa(m.Cores)
	if fs, err := n.proc(); err == nil {
		if mem, err := fs.Meminfo(); err == nil && mem.MemTotalBytes != nil {
			m.MemoryBytes = int64(min(*mem.MemTotalBytes, math.MaxInt64))
		}
	}
	if m.Hostname = hostfs.Text(n.root.Proc("sys", "kernel", "hostname")); m.Hostname == "" {
		m.Hostname, _ = os.Hostname()
	}
	return m, nil
}

// CPU reads the time that the cores spent since boot.
func (n *Node) CPU() (CPU, error) {
	fs, err := n.proc()
	if err != nil {
		return CPU{}, err
	}
	stat, err := fs.Stat()
	if err != nil {
		return CPU{}, fmt.Errorf("node: %w", err)
	}
	t := stat.CPUTotal
	if t == (procfs.CPUStat{}) && len(stat.CPU) == 0 {
		return CPU{}, fmt.Errorf("node: %w: no cpu line in /proc/stat", hostfs.ErrFormat)
	}
	cpu := CPU{Busy: busy(t), Steal: t.Steal, Cores: len(stat.CPU), PerCPU: make(map[int]float64, len(stat.CPU))}
	for i, t := range stat.CPU {
		cpu.PerCPU[int(i)] = busy(t)
	}
	return cpu, nil
}

func busy(t procfs.CPUStat) float64 { return t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ }

// Load reads the load average of the last minute.
func (n *Node) Load() (float64, error) {
	fs, err := n.proc()
	if err != nil {
		return 0, err
	}
	load, err := fs.LoadAvg()
	if err != nil {
		return 0, fmt.Errorf("node: %w", err)
	}
	if load.Load1 < 0 || math.IsNaN(load.Load1) {
		return 0, fmt.Errorf("node: %w: load %v", hostfs.ErrFormat, load.Load1)
	}
	return load.Load1, nil
}

func (n *Node) proc() (procfs.FS, error) {
	fs, err := procfs.NewFS(n.root.Proc())
	if err != nil {
		return fs, fmt.Errorf("node: %w", err)
	}
	return fs, nil
}

// Model reads the CPU's name off /proc/cpuinfo, which spells it differently from
// one architecture to the next.
func Model(cpuinfo []byte) string {
	field := func(name string) string { return hostfs.Value(cpuinfo, name) }
	arm := "unknown"
	if part := field("CPU part"); part != "" { // ARM gives numbers only
		arm = "arm " + field("CPU implementer") + " " + part
	}
	return cmp.Or(field("model name"), field("cpu model"), field("Processor"), field("cpu"), arm)
}

// NormaliseModel makes one name of the spellings of one CPU: lower case, without
// trade marks, clock rates and filler words, words joined by dashes.
func NormaliseModel(model string) string {
	model, _, _ = strings.Cut(strings.ToLower(model), "@")
	for _, mark := range []string{"(r)", "(tm)", "®", "™"} {
		model = strings.ReplaceAll(model, mark, " ")
	}
	words := strings.FieldsFunc(model, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	words = slices.DeleteFunc(words, func(w string) bool {
		return slices.Contains([]string{"cpu", "processor", "with", "core", "cores"}, w)
	})
	return cmp.Or(strings.Join(words, "-"), "unknown")
}
