package metrics

import (
	"cmp"
	"math"
	"runtime"
	"strconv"
	"strings"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/energy"
	"pitchpipe/exporter/sampler"
	"pitchpipe/exporter/window"
)

// encode writes the page of a caller who sees what v says.
func (s *pages) encode(snap *sampler.Snapshot, latest []window.Latest, v view) []byte {
	s.addNode(snap, v)
	s.addSelf(snap)
	for _, l := range latest {
		if v.sees(l.Job.UID) {
			s.addJob(snap, l)
		}
	}
	return s.take()
}

func (s *pages) addNode(snap *sampler.Snapshot, v view) {
	about, add := s.cfg.Node(), s.adder(nil)
	add("pitchpipe_build_info", 1, s.cfg.Version, runtime.Version())
	for _, source := range about.Sources {
		// A time in a label would make a new series of each silence.
		reason, _, _ := strings.Cut(source.Reason, " since ")
		add("pitchpipe_source_up", truth(source.Support == api.Supported && !source.Silent), source.Name, string(source.Support), reason)
		if name, ok := api.EventOf(source.Name); ok && source.Group != "" {
			add(perfInfo, 1, name, source.Group)
		}
	}
	s.addGPUs()
	add("pitchpipe_node_info", 1, about.CPUModel, about.MachineKind, about.EnergySource)
	add("pitchpipe_node_cores", float64(cmp.Or(snap.CPU.Cores, about.Cores)))
	add("pitchpipe_node_memory_bytes", float64(about.MemoryBytes))
	add("pitchpipe_node_cpu_busy_seconds_total", snap.CPU.Busy)
	add("pitchpipe_node_cpu_steal_seconds_total", snap.CPU.Steal)
	add("pitchpipe_node_load1", snap.Load)
	parts := func(name string, j energy.Joules, before ...string) {
		add(name, j.Active, append(before, snap.Source, "active")...)
		add(name, j.Idle, append(before, snap.Source, "idle")...)
		if j.GPU > 0 || s.cfg.GPUs != nil {
			add(name, j.GPU, append(before, energy.GPU, "gpu")...)
		}
	}
	parts("pitchpipe_node_energy_joules_total", snap.Book.Node)
	parts("pitchpipe_system_energy_joules_total", snap.Book.System)
	for _, u := range snap.Users {
		if v.sees(u.UID) {
			parts("pitchpipe_user_energy_joules_total", u.Joules, strconv.FormatUint(uint64(u.UID), 10))
		}
	}
	add("pitchpipe_node_energy_covered_seconds_total", snap.Covered)
	for _, z := range snap.Zones {
		add("pitchpipe_node_zone_energy_joules_total", z.Joules, z.Name, z.ID, strconv.FormatBool(z.Counted))
	}
	add("pitchpipe_node_idle_watts", snap.IdleWatts, snap.IdleBasis)
	for _, i := range snap.Idle {
		add("pitchpipe_node_idle_calibration_watts", i.Watts, i.ID)
		if !i.At.IsZero() {
			add("pitchpipe_node_idle_calibration_time_seconds", float64(i.At.Unix()), i.ID)
		}
	}
	add("pitchpipe_jobs_running", float64(snap.Running))
}

func (s *pages) addJob(snap *sampler.Snapshot, l window.Latest) {
	job := jobLabels(l.Job)
	add := s.adder(job)
	add("pitchpipe_job_info", 1, strconv.FormatUint(uint64(l.Job.UID), 10), l.Job.Cgroup)
	began := l.Job.First
	if began.IsZero() {
		began = l.Job.Started
	}
	add("pitchpipe_job_start_time_seconds", float64(began.UnixMilli())/1e3)
	add("pitchpipe_job_ended", truth(l.Job.Ended))
	parts := l.Joules
	for i, v := range l.Values {
		switch c := s.columns[i]; {
		case math.IsNaN(v) && c.family != nil && c.family.Column == api.ColJoules:
			parts.GPU = 0 // they lack some
		case math.IsNaN(v):
		// Not those of a mark, which are ahead: the next exporter goes on from these.
		case c.family != nil && c.family.Column == api.ColJoules:
			c.family.add(l.Joules.Total(), job, l.Source)
		case c.family != nil && c.family.Column == api.ColGPUJoules:
			c.family.add(l.Joules.GPU, job)
		case c.family != nil:
			c.family.add(v, job)
		case c.event != "":
			add(perfOthers, v, c.event)
		case c.group != "":
			running := 0.0
			if c.other >= 0 && c.other < len(l.Values) && !math.IsNaN(l.Values[c.other]) {
				running = l.Values[c.other]
			}
			add(perfEnabled, v, c.group)
			add(perfRunning, running, c.group)
			if v > 0 {
				add(perfRatio, running/v, c.group)
			}
		}
	}
	addParts(add, parts, snap.Base, l.Source)
	b := l.Job.Budget
	if b == nil {
		return
	}
	add("pitchpipe_job_energy_budget_joules", b.Joules, string(b.By), b.Counts())
	add("pitchpipe_job_energy_budget_used_joules", b.Used)
	if b.Seconds > 0 {
		add("pitchpipe_job_time_budget_seconds", b.Seconds)
	}
}

const jobParts = "pitchpipe_job_energy_component_joules_total"

// addParts writes what a job's joules are made of; source is that of what the meter counts.
func addParts(add func(name string, v float64, values ...string), j energy.Joules, base energy.Component, source string) {
	if !j.Lacks {
		add("pitchpipe_job_energy_idle_joules_total", j.Idle, source)
		add(jobParts, j.Active-j.DRAMActive, string(base), "active", source)
		add(jobParts, j.Idle-j.DRAMIdle, string(base), "idle", source)
	}
	if j.DRAMActive+j.DRAMIdle > 0 && !j.Lacks {
		add(jobParts, j.DRAMActive, string(energy.DRAM), "active", source)
		add(jobParts, j.DRAMIdle, string(energy.DRAM), "idle", source)
	}
	if j.GPU > 0 {
		add(jobParts, j.GPU, string(energy.GPU), "gpu", energy.GPU)
	}
}

func (s *pages) addSelf(snap *sampler.Snapshot) {
	stats, add := snap.Stats, s.adder(nil)
	if !snap.At.IsZero() {
		add("pitchpipe_exporter_sample_time_seconds", float64(snap.At.UnixMilli())/1e3)
	}
	add("pitchpipe_exporter_ticks_total", float64(stats.Ticks))
	add("pitchpipe_exporter_tick_seconds_total", stats.TickSeconds)
	add("pitchpipe_exporter_read_errors_total", float64(stats.ReadErrors))
	for result, n := range map[string]uint64{"snapshot": stats.Marks - stats.MarksBare, "bare": stats.MarksBare, "refused": stats.MarksRefused, "repeated": stats.MarksRepeated} {
		add("pitchpipe_exporter_marks_total", float64(n), result)
	}
	add("pitchpipe_exporter_saves_total", float64(stats.Saves))
	add("pitchpipe_exporter_jobs_refused_total", float64(stats.JobsRefused))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
