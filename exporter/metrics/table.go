package metrics

import (
	"strconv"

	"pitchpipe/exporter/api"
	"pitchpipe/exporter/collector/perf"
)

// Metric describes one family.
type Metric struct {
	Name   string
	Kind   string // counter or gauge
	Help   string
	Labels []string
	Column string // of the sample that it shows, empty = none
}

func jobLabelNames() []string { return []string{"manager", "job_id", "attempt"} }

func job(more ...string) []string { return append(jobLabelNames(), more...) }

// Table lists all families in the order in which they are documented.
func Table() []Metric {
	return append([]Metric{
		{"pitchpipe_build_info", "gauge", "Version of the exporter; always 1.", []string{"version", "goversion"}, ""},
		{"pitchpipe_source_up", "gauge", "1 where a source can be measured, 0 where it is unsupported or denied, or supported and does not answer; the reason says by what means, or why not.", []string{"source", "support", "reason"}, ""},
		{"pitchpipe_node_info", "gauge", "What machine this is; always 1.", []string{"cpu_model", "machine_kind", "energy_source"}, ""},
		{"pitchpipe_node_cores", "gauge", "Cores that are online.", nil, ""},
		{"pitchpipe_node_memory_bytes", "gauge", "Memory of the machine.", nil, ""},
		{"pitchpipe_node_cpu_busy_seconds_total", "counter", "Busy CPU time of all cores since boot.", nil, ""},
		{"pitchpipe_node_cpu_steal_seconds_total", "counter", "CPU time that the hypervisor took since boot.", nil, ""},
		{"pitchpipe_node_load1", "gauge", "Load average of the last minute.", nil, ""},
		{"pitchpipe_node_energy_joules_total", "counter", "Energy of the node since the exporter began, by its kind: active (what work took), idle (what it would have taken without) and gpu (graphics cards, whose source is gpu).", []string{"source", "kind"}, ""},
		{"pitchpipe_system_energy_joules_total", "counter", "Part of the node's energy that no job is charged with; jobs and system sum to the node.", []string{"source", "kind"}, ""},
		{"pitchpipe_user_energy_joules_total", "counter", "Energy that the jobs of one user were charged with since the exporter began; it continues across jobs, so that a rate over it loses none.", []string{"uid", "source", "kind"}, ""},
		{"pitchpipe_node_energy_covered_seconds_total", "counter", "Time that the node's energy counters cover; grows by one a second while the meter answers.", nil, ""},
		{"pitchpipe_node_zone_energy_joules_total", "counter", "Energy of one counter since the exporter began, wraps repaired: a powercap zone, a domain of the power PMU, one of pm_counters, a sensor; counted says whether it is part of the node's.", []string{"zone", "path", "counted"}, ""},
		{"pitchpipe_node_idle_watts", "gauge", "What the node is taken to consume without work.", []string{"basis"}, ""},
		{"pitchpipe_node_idle_calibration_time_seconds", "gauge", "When a counter's idle power was measured, its cores idle.", []string{"path"}, ""},
		{"pitchpipe_node_idle_calibration_watts", "gauge", "Calibrated idle power of the counter.", []string{"path"}, ""},
		{"pitchpipe_jobs_running", "gauge", "Jobs that are being sampled.", nil, ""},
		{"pitchpipe_job_info", "gauge", "One series a job attempt; always 1.", job("uid", "cgroup"), ""},
		{"pitchpipe_job_start_time_seconds", "gauge", "When an exporter first saw the attempt, earlier ones included where state is kept.", job(), ""},
		{"pitchpipe_job_ended", "gauge", "1 after the attempt ended; its values then stand still until it is forgotten.", job(), ""},
		{"pitchpipe_job_energy_joules_total", "counter", "Energy attributed to the attempt: active, idle and that of its GPUs. The source is modelled where any part is.", job("source"), api.ColJoules},
		{jobParts, "counter", "Energy of the attempt by component: package, node (the whole machine), dram or gpu, each with its own source.", job("component", "kind", "source"), ""},
		{"pitchpipe_job_energy_idle_joules_total", "counter", "Part of the attempt's energy that its allocated cores take without work.", job("source"), ""},
		{"pitchpipe_job_energy_budget_joules", "gauge", "Energy that all attempts of the job may use together: the lowest that an administrator's file, the controller or the job's user said (by); counts says whether modelled joules count against it.", job("by", "counts"), ""},
		{"pitchpipe_job_energy_budget_used_joules", "gauge", "Part of the energy budget that earlier attempts used.", job(), ""},
		{"pitchpipe_job_time_budget_seconds", "gauge", "Wall time that the attempt may take, from its start.", job(), ""},
		{"pitchpipe_job_cpu_user_seconds_total", "counter", "CPU time in user mode.", job(), api.ColUserSeconds},
		{"pitchpipe_job_cpu_system_seconds_total", "counter", "CPU time in kernel mode.", job(), api.ColSystemSeconds},
		{"pitchpipe_job_cpu_seconds_total", "counter", "CPU time.", job(), api.ColCPUSeconds},
		{"pitchpipe_job_allocated_cores", "gauge", "Cores that were given to the attempt: those of its cpuset or affinity, or its part by weight of those that it shares; missing where it may use all and was given no number.", job(), api.ColAllocatedCores},
		{"pitchpipe_job_memory_rss_bytes", "gauge", "Resident anonymous memory. Without a cgroup, of its processes and with the largest shared memory of one; what they share since a fork counts for each.", job(), api.ColRSS},
		{"pitchpipe_job_memory_file_bytes", "gauge", "Page cache charged to the attempt.", job(), api.ColCache},
		{"pitchpipe_job_memory_peak_bytes", "gauge", "Largest memory use so far.", job(), api.ColPeak},
		{"pitchpipe_job_processes", "gauge", "Processes that live.", job(), api.ColProcesses},
		{"pitchpipe_job_threads", "gauge", "Threads of the processes that work: each took at least a fifth of their mean CPU time.", job(), api.ColThreads},
		{"pitchpipe_job_voluntary_switches_total", "counter", "Context switches that threads asked for by waiting.", job(), api.ColVoluntary},
		{"pitchpipe_job_involuntary_switches_total", "counter", "Context switches forced on threads.", job(), api.ColInvoluntary},
		{"pitchpipe_job_read_chars_bytes_total", "counter", "Bytes read by system calls, cached or not.", job(), api.ColReadChars},
		{"pitchpipe_job_write_chars_bytes_total", "counter", "Bytes written by system calls, cached or not.", job(), api.ColWriteChars},
		{"pitchpipe_job_read_bytes_total", "counter", "Bytes read from storage.", job(), api.ColReadBytes},
		{"pitchpipe_job_written_bytes_total", "counter", "Bytes written to storage.", job(), api.ColWriteBytes},
		{"pitchpipe_job_cpu_pressure_seconds_total", "counter", "Time in which some task waited for a CPU.", job(), api.ColCPUPressure},
		{"pitchpipe_job_memory_pressure_seconds_total", "counter", "Time in which some task waited for memory.", job(), api.ColMemoryPressure},
		{"pitchpipe_job_io_pressure_seconds_total", "counter", "Time in which some task waited for IO.", job(), api.ColIOPressure},
		{"pitchpipe_job_perf_task_clock_seconds_total", "counter", "CPU time as perf's task clock counts it.", job(), api.ColTaskClock},
		{"pitchpipe_job_perf_context_switches_total", "counter", "Context switches, counted by perf.", job(), api.ColContextSwitch},
		{"pitchpipe_job_perf_cpu_migrations_total", "counter", "Moves from one CPU to another, counted by perf.", job(), api.ColMigrations},
		{"pitchpipe_job_minor_faults_total", "counter", "Page faults that needed no IO; counted by perf where it can be.", job(), api.ColMinorFaults},
		{"pitchpipe_job_major_faults_total", "counter", "Page faults that needed IO; counted by perf where it can be.", job(), api.ColMajorFaults},
		{"pitchpipe_job_perf_enabled_seconds_total", "counter", "Time for which perf events were enabled, summed over CPUs.", job(), api.ColPerfEnabled},
		{"pitchpipe_job_perf_running_seconds_total", "counter", "Time for which perf events counted; less than enabled where they were multiplexed.", job(), api.ColPerfRunning},
		{"pitchpipe_exporter_sample_time_seconds", "gauge", "When the newest sample was taken.", nil, ""},
		{"pitchpipe_exporter_ticks_total", "counter", "Samples of the node taken.", nil, ""},
		{"pitchpipe_exporter_tick_seconds_total", "counter", "Time that sampling took.", nil, ""},
		{"pitchpipe_exporter_read_errors_total", "counter", "Readings that were incomplete.", nil, ""},
		{"pitchpipe_exporter_marks_total", "counter", "Progress marks by outcome: snapshot, bare (above the rate), refused (from no job), repeated (reported before, checkpoints included).", []string{"result"}, ""},
		{"pitchpipe_exporter_saves_total", "counter", "Checkpoints that jobs said they had saved.", nil, ""},
		{"pitchpipe_exporter_jobs_refused_total", "counter", "Jobs not sampled because the limit on jobs is reached.", nil, ""},
	}, append(gpuTable(), perfTable()...)...)
}

// gpuTable lists the families about GPUs, which nodes without any do not have.
func gpuTable() []Metric {
	one := func(more ...string) []string { return append([]string{"uuid"}, more...) }
	return []Metric{
		{"pitchpipe_gpu_info", "gauge", "One series a GPU, its number on this node, and who was asked; always 1.", one("index", "name", "driver", "backend"), ""},
		{"pitchpipe_gpu_reading_time_seconds", "gauge", "When the GPUs were last read.", nil, ""},
		{"pitchpipe_gpu_energy_joules_total", "counter", "Energy of the GPU since the exporter began, by the driver's counter or integrated from its power (source).", one("source"), ""},
		{"pitchpipe_gpu_energy_covered_seconds_total", "counter", "Time whose energy is in that counter.", one(), ""},
		{"pitchpipe_gpu_power_watts", "gauge", "Power at the last reading.", one(), ""},
		{"pitchpipe_gpu_power_limit_watts", "gauge", "Power limit that is enforced.", one(), ""},
		{"pitchpipe_gpu_busy_seconds_total", "counter", "Time for which a kernel ran, by the driver's utilisation at each reading.", one(), ""},
		{"pitchpipe_gpu_memory_used_bytes", "gauge", "Memory of the GPU in use.", one(), ""},
		{"pitchpipe_gpu_memory_size_bytes", "gauge", "Memory of the GPU.", one(), ""},
		{"pitchpipe_job_gpu_energy_joules_total", "counter", "Energy of the GPUs that the attempt's processes are on, by share; it is part of pitchpipe_job_energy_joules_total.", job(), api.ColGPUJoules},
		{"pitchpipe_job_gpu_busy_seconds_total", "counter", "Time for which those GPUs were busy, by share.", job(), api.ColGPUBusy},
		{"pitchpipe_job_gpu_memory_bytes", "gauge", "Memory of GPUs that the attempt's processes hold.", job(), api.ColGPUMemory},
	}
}

func (s *pages) addGPUs() {
	if s.cfg.GPUs == nil {
		return
	}
	now, add := s.cfg.GPUs(), s.adder(nil)
	if now.Backend == "" {
		return
	}
	add("pitchpipe_gpu_reading_time_seconds", float64(now.At.UnixMilli())/1e3)
	for _, a := range now.Accounts {
		add("pitchpipe_gpu_info", 1, a.UUID, strconv.Itoa(a.Index), a.Name, now.Driver, now.Backend)
		source := "power"
		if a.Joules != nil {
			source = "counter"
		}
		if a.Joules != nil || a.Watts != nil {
			add("pitchpipe_gpu_energy_joules_total", a.Used, a.UUID, source)
			add("pitchpipe_gpu_energy_covered_seconds_total", a.Covered, a.UUID)
		}
		if a.Busy != nil {
			add("pitchpipe_gpu_busy_seconds_total", a.BusySeconds, a.UUID)
		}
		for name, v := range map[string]*float64{"pitchpipe_gpu_power_watts": a.Watts, "pitchpipe_gpu_power_limit_watts": a.LimitWatts} {
			if v != nil {
				add(name, *v, a.UUID)
			}
		}
		for name, v := range map[string]*int64{"pitchpipe_gpu_memory_used_bytes": a.MemoryUsed, "pitchpipe_gpu_memory_size_bytes": a.MemoryTotal} {
			if v != nil {
				add(name, float64(*v), a.UUID)
			}
		}
	}
}

const (
	perfInfo    = "pitchpipe_perf_event_info"
	perfOthers  = "pitchpipe_job_perf_other_events_total"
	perfEnabled = "pitchpipe_job_perf_group_enabled_seconds_total"
	perfRunning = "pitchpipe_job_perf_group_running_seconds_total"
	perfRatio   = "pitchpipe_job_perf_multiplex_ratio"
)

// perfTable lists the families of the perf events that an administrator may choose.
func perfTable() []Metric {
	var out []Metric
	for _, e := range perf.Catalogue() {
		if e.Metric != "" {
			out = append(out, Metric{"pitchpipe_job_perf_" + e.Metric + "_total", "counter", e.Help + " Perf event " + e.Name + ".", job(), e.Column})
		}
	}
	return append(out,
		Metric{perfOthers, "counter", "Perf events that only some machines name: those of a PMU and tracepoints.", job("event"), ""},
		Metric{perfEnabled, "counter", "Time for which a group of perf events was enabled, summed over CPUs.", job("group"), ""},
		Metric{perfRunning, "counter", "Time for which a group of perf events counted; what it counted is scaled up by enabled over running time.", job("group"), ""},
		Metric{perfRatio, "gauge", "Part of its enabled time for which a group of perf events counted: 1 = all of it, 0 = nothing is known of its events.", job("group"), ""},
		Metric{perfInfo, "gauge", "Which perf events this node counts, and in which group; always 1.", []string{"event", "group"}, ""},
	)
}
