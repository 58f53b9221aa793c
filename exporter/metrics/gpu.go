package metrics

import (
	"strconv"

	"pitchpipe/exporter/api"
)

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
	now, add := s.cfg.GPUs(), s.addPlain
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
