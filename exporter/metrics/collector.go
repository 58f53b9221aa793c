package metrics

import (
	"cmp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/attrib"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/collector/gpu"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// Collector turns what was sampled into text.
type Collector struct {
	version  string
	node     api.Node
	store    *window.Store
	snapshot func() *sampler.Snapshot
	table    []Metric
	gpus     func() *gpu.Snapshot // nil: none here
	now      func() api.Node      // nil: the node stays as it was
}

// New returns a collector.
func New(version string, node api.Node, store *window.Store, snapshot func() *sampler.Snapshot) *Collector {
	return &Collector{version: version, node: node, store: store, snapshot: snapshot, table: Table()}
}

// WithNode has each page tell the node as it is then: a source may come or go after the
// exporter began.
func (c *Collector) WithNode(now func() api.Node) *Collector {
	c.now = now
	return c
}

// about is the node as it is now.
func (c *Collector) about() api.Node {
	if c.now != nil {
		return c.now()
	}
	return c.node
}

// point is one series of a family, its labels written already.
type point struct {
	labels []byte
	value  float64
}

// points are those of the families that no column stands for.
type points map[string][]point

// add takes the values of a family's labels in their order.
func (c *Collector) add(p points, name string, v float64, values ...string) {
	for _, m := range c.table {
		if m.Name != name {
			continue
		}
		var labels []byte
		for i, value := range values {
			labels = label(labels, m.Labels[i], value)
		}
		p[name] = append(p[name], point{labels, v})
		return
	}
}

// encode writes the page of who sees what v lets him.
func (c *Collector) encode(snap *sampler.Snapshot, latest []window.Latest, v View) []byte {
	p := points{}
	c.addNode(p, snap, v)
	c.addSelf(p, snap)
	shown := make([]window.Latest, 0, len(latest))
	for _, l := range latest {
		if v.sees(l.Job.UID) {
			shown = append(shown, l)
		}
	}
	labels := make([][]byte, len(shown))
	for i, l := range shown {
		labels[i] = label(label(label(nil, "manager", l.Job.Manager), "job_id", l.Job.ID), "attempt", strconv.Itoa(l.Job.Attempt))
		c.addJob(p, snap, l, labels[i])
	}
	var t text
	for _, m := range c.table {
		begun := false
		begin := func() {
			if !begun {
				t.head(m)
				begun = true
			}
		}
		for _, s := range p[m.Name] {
			begin()
			t.series(m.Name, s.labels, s.value)
		}
		if m.Column == "" {
			continue
		}
		for i, l := range shown {
			value, ok := l.Values[m.Column]
			if !ok {
				continue
			}
			begin()
			if m.Column == api.ColJoules {
				t.series(m.Name, label(slices.Clip(labels[i]), "source", l.Source), value)
				continue
			}
			t.series(m.Name, labels[i], value)
		}
	}
	return t.b
}

func (c *Collector) addNode(p points, snap *sampler.Snapshot, v View) {
	about := c.about()
	c.add(p, "pitchpipe_build_info", 1, c.version, runtime.Version())
	for _, s := range about.Sources {
		s, answers := heard(s, snap.Silent)
		c.add(p, "pitchpipe_source_up", truth(s.Support == api.Supported && answers), s.Name, string(s.Support), s.Reason)
	}
	c.addPerfNode(p, about)
	c.addGPUs(p)
	c.add(p, "pitchpipe_node_info", 1, about.CPUModel, about.MachineKind, about.EnergySource)
	c.add(p, "pitchpipe_node_cores", float64(cmp.Or(snap.CPU.Cores, about.Cores)))
	c.add(p, "pitchpipe_node_memory_bytes", float64(about.MemoryBytes))
	c.add(p, "pitchpipe_node_cpu_busy_seconds_total", snap.CPU.Busy)
	c.add(p, "pitchpipe_node_cpu_steal_seconds_total", snap.CPU.Steal)
	c.add(p, "pitchpipe_node_load1", snap.Load)
	parts := func(name string, j energy.Joules, before ...string) {
		c.add(p, name, j.Active, append(before, snap.Source, "active")...)
		c.add(p, name, j.Idle, append(before, snap.Source, "idle")...)
		if j.GPU > 0 || c.gpus != nil {
			c.add(p, name, j.GPU, append(before, energy.GPU, "gpu")...)
		}
	}
	parts("pitchpipe_node_energy_joules_total", snap.Book.Node)
	parts("pitchpipe_system_energy_joules_total", snap.Book.System)
	for _, u := range snap.Users {
		if v.sees(u.UID) {
			parts("pitchpipe_user_energy_joules_total", u.Joules, strconv.FormatUint(uint64(u.UID), 10))
		}
	}
	c.add(p, "pitchpipe_node_energy_covered_seconds_total", snap.Covered)
	for _, z := range snap.Zones {
		c.add(p, "pitchpipe_node_zone_energy_joules_total", z.Joules, z.Name, z.ID, strconv.FormatBool(z.Counted))
	}
	c.add(p, "pitchpipe_node_idle_watts", snap.IdleWatts, snap.IdleBasis)
	for _, i := range snap.Idle {
		c.add(p, "pitchpipe_node_idle_calibration_watts", i.Watts, i.ID)
		if !i.At.IsZero() {
			c.add(p, "pitchpipe_node_idle_calibration_time_seconds", float64(i.At.Unix()), i.ID)
		}
	}
	c.add(p, "pitchpipe_jobs_running", float64(snap.Running))
}

func (c *Collector) addJob(p points, snap *sampler.Snapshot, l window.Latest, labels []byte) {
	add := func(name string, v float64, more ...string) {
		b := slices.Clip(labels)
		for i := 0; i < len(more); i += 2 {
			b = label(b, more[i], more[i+1])
		}
		p[name] = append(p[name], point{b, v})
	}
	add("pitchpipe_job_info", 1, "uid", strconv.FormatUint(uint64(l.Job.UID), 10), "cgroup", l.Job.Cgroup)
	began := l.Job.First
	if began.IsZero() {
		began = l.Job.Started
	}
	add("pitchpipe_job_start_time_seconds", float64(began.UnixMilli())/1e3)
	add("pitchpipe_job_ended", truth(l.Job.Ended))
	key := attrib.Key{Manager: l.Job.Manager, ID: l.Job.ID, Attempt: l.Job.Attempt}
	if joules, known := snap.JobJoules[key]; known {
		add("pitchpipe_job_energy_idle_joules_total", joules.Idle, "source", l.Source)
		addParts(add, joules, snap.Base, l.Source)
	}
	c.addPerfJob(add, l)
	b := l.Job.Budget
	if b == nil {
		return
	}
	add("pitchpipe_job_energy_budget_joules", b.Joules, "by", string(b.By), "counts", b.Counts())
	add("pitchpipe_job_energy_budget_used_joules", b.Used)
	if b.Seconds > 0 {
		add("pitchpipe_job_time_budget_seconds", b.Seconds)
	}
}

const jobParts = "pitchpipe_job_energy_component_joules_total"

// addParts tells what a job's joules are made of; source is that of what the meter counts.
func addParts(add func(name string, v float64, more ...string), j energy.Joules, base energy.Component, source string) {
	part := func(component energy.Component, kind, source string, v float64) {
		add(jobParts, v, "component", string(component), "kind", kind, "source", source)
	}
	part(base, "active", source, j.Active-j.DRAMActive)
	part(base, "idle", source, j.Idle-j.DRAMIdle)
	if j.DRAMActive+j.DRAMIdle > 0 {
		part(energy.DRAM, "active", source, j.DRAMActive)
		part(energy.DRAM, "idle", source, j.DRAMIdle)
	}
	if j.GPU > 0 {
		part(energy.GPU, "gpu", energy.GPU, j.GPU)
	}
}

func (c *Collector) addSelf(p points, snap *sampler.Snapshot) {
	s := snap.Stats
	if !snap.At.IsZero() {
		c.add(p, "pitchpipe_exporter_sample_time_seconds", float64(snap.At.UnixMilli())/1e3)
	}
	c.add(p, "pitchpipe_exporter_ticks_total", float64(s.Ticks))
	c.add(p, "pitchpipe_exporter_tick_seconds_total", s.TickSeconds)
	c.add(p, "pitchpipe_exporter_read_errors_total", float64(s.ReadErrors))
	c.add(p, "pitchpipe_exporter_marks_total", float64(s.Marks-s.MarksBare), "snapshot")
	c.add(p, "pitchpipe_exporter_marks_total", float64(s.MarksBare), "bare")
	c.add(p, "pitchpipe_exporter_marks_total", float64(s.MarksRefused), "refused")
	c.add(p, "pitchpipe_exporter_marks_total", float64(s.MarksRepeated), "repeated")
	c.add(p, "pitchpipe_exporter_saves_total", float64(s.Saves))
	c.add(p, "pitchpipe_exporter_jobs_refused_total", float64(s.JobsRefused))
}

// silent is the reason of a source that does not answer. Since when is in the log and in the
// API: a time in a label would make a series of its own of each silence.
const silent = "does not answer"

// heard tells whether a source answers. One by whose own name something is said has that as
// its reason; all of a reader fall silent together.
func heard(s api.Source, mute []api.Source) (api.Source, bool) {
	if s.Support != api.Supported {
		return s, !s.Silent
	}
	kind, _, _ := strings.Cut(s.Name, "/")
	for _, m := range mute {
		switch m.Name {
		case s.Name:
			if s.Reason = m.Reason; kind == s.Name {
				s.Reason = silent
			}
			return s, false
		case kind:
			s.Reason = silent
			return s, false
		}
	}
	return s, !s.Silent
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
