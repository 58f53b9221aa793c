package metrics

import (
	"runtime"
	"slices"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// Collector is a prometheus.Collector.
type Collector struct {
	version  string
	node     api.Node
	store    *window.Store
	snapshot func() *sampler.Snapshot
	table    []Metric
	descs    map[string]*prometheus.Desc
	kinds    map[string]prometheus.ValueType
	visible  func(api.Job) bool // nil = all jobs are
}

var _ prometheus.Collector = (*Collector)(nil)

// New returns a collector.
func New(version string, node api.Node, store *window.Store, snapshot func() *sampler.Snapshot) *Collector {
	c := &Collector{version: version, node: node, store: store, snapshot: snapshot, table: Table(), descs: map[string]*prometheus.Desc{}, kinds: map[string]prometheus.ValueType{}}
	for _, m := range c.table {
		c.kinds[m.Name] = prometheus.GaugeValue
		if m.Kind == "counter" {
			c.kinds[m.Name] = prometheus.CounterValue
		}
		c.descs[m.Name] = prometheus.NewDesc(m.Name, m.Help, m.Labels, nil)
	}
	return c
}

// Describe lists the families.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.table {
		ch <- c.descs[m.Name]
	}
}

// Collect shows the newest values.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(name string, v float64, labels ...string) {
		m, err := prometheus.NewConstMetric(c.descs[name], c.kinds[name], v, labels...)
		if err != nil {
			m = prometheus.NewInvalidMetric(c.descs[name], err)
		}
		ch <- m
	}
	snap := c.snapshot()
	c.collectNode(emit, snap)
	for _, l := range c.store.Latest() {
		if c.visible != nil && !c.visible(l.Job) {
			continue
		}
		key := attrib.Key{Manager: l.Job.Manager, ID: l.Job.ID, Attempt: l.Job.Attempt}
		joules, known := snap.JobJoules[key]
		c.collectJob(emit, l, joules, known)
	}
	c.collectSelf(emit, snap.Stats)
}

type emitter func(name string, v float64, labels ...string)

func (c *Collector) collectNode(emit emitter, snap *sampler.Snapshot) {
	emit("pitchpipe_build_info", 1, c.version, runtime.Version())
	for _, s := range c.node.Sources {
		emit("pitchpipe_source_up", truth(s.Support == api.Supported), s.Name, string(s.Support), s.Reason)
	}
	emit("pitchpipe_node_info", 1, c.node.CPUModel, c.node.MachineKind, c.node.EnergySource)
	emit("pitchpipe_node_cores", float64(c.node.Cores))
	emit("pitchpipe_node_memory_bytes", float64(c.node.MemoryBytes))
	emit("pitchpipe_node_cpu_busy_seconds_total", snap.CPU.Busy)
	emit("pitchpipe_node_cpu_steal_seconds_total", snap.CPU.Steal)
	emit("pitchpipe_node_load1", snap.Load)
	for name, j := range map[string]energy.Joules{
		"pitchpipe_node_energy_joules_total":   snap.Book.Node,
		"pitchpipe_system_energy_joules_total": snap.Book.System,
	} {
		emit(name, j.Active, snap.Source, "active")
		emit(name, j.Idle, snap.Source, "idle")
	}
	for _, z := range snap.Zones {
		emit("pitchpipe_node_zone_energy_joules_total", z.Joules, z.Name, z.ID, strconv.FormatBool(z.Counted))
	}
	emit("pitchpipe_node_idle_watts", snap.IdleWatts, snap.IdleBasis)
	emit("pitchpipe_jobs_running", float64(snap.Running))
}

func (c *Collector) collectJob(emit emitter, l window.Latest, joules energy.Joules, known bool) {
	labels := []string{l.Job.Manager, l.Job.ID, strconv.Itoa(l.Job.Attempt)}
	with := func(more ...string) []string { return append(slices.Clip(labels), more...) }
	emit("pitchpipe_job_info", 1, with(strconv.FormatUint(uint64(l.Job.UID), 10), l.Job.Cgroup)...)
	emit("pitchpipe_job_start_time_seconds", float64(l.Job.Started.UnixMilli())/1e3, labels...)
	emit("pitchpipe_job_ended", truth(l.Job.Ended), labels...)
	if known {
		emit("pitchpipe_job_energy_idle_joules_total", joules.Idle, with(l.Source)...)
	}
	for _, m := range c.table {
		v, ok := l.Values[m.Column]
		switch {
		case !ok:
		case m.Column == api.ColJoules:
			emit(m.Name, v, with(l.Source)...)
		default:
			emit(m.Name, v, labels...)
		}
	}
}

func (c *Collector) collectSelf(emit emitter, s sampler.Stats) {
	emit("pitchpipe_exporter_ticks_total", float64(s.Ticks))
	emit("pitchpipe_exporter_tick_seconds_total", s.TickSeconds)
	emit("pitchpipe_exporter_read_errors_total", float64(s.ReadErrors))
	emit("pitchpipe_exporter_marks_total", float64(s.Marks-s.MarksBare), "snapshot")
	emit("pitchpipe_exporter_marks_total", float64(s.MarksBare), "bare")
	emit("pitchpipe_exporter_marks_total", float64(s.MarksRefused), "refused")
	emit("pitchpipe_exporter_marks_total", float64(s.MarksRepeated), "repeated")
	emit("pitchpipe_exporter_saves_total", float64(s.Saves))
	emit("pitchpipe_exporter_jobs_refused_total", float64(s.JobsRefused))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
