package respond

import (
	"math"

	"pitchpipe/controller/tuning"
)

// Usage is what the first epochs of a job show of what it makes of its cores.
type Usage struct {
	Cores    float64 // that it had
	Busy     float64 // CPU seconds per second
	Waiting  float64 // share of the time in which it waited for storage, 0 to 1
	Pressure float64 // share of the time in which its threads waited for a core, 0 to 1
	GPUWatts float64 // that its GPUs took; 0: it has none
	Switches float64 // voluntary context switches per CPU second
	Threads  float64 // per core; 0: unknown
}

// threads is how many of its own threads a core runs, at most one: 0 where unknown.
func (u *Usage) threads() float64 {
	if u == nil {
		return 0
	}
	return min(u.Threads, 1)
}

// UsageOf reads a profile; nil: it does not say.
func UsageOf(p *tuning.Profile, own tuning.Settings) *Usage {
	if p == nil {
		return nil
	}
	cores := p.Settings[tuning.Cores].Float()
	if cores == 0 {
		cores = own[tuning.Cores].Float()
	}
	utilisation, ok := p.Features["cpu_utilisation"]
	if !ok || !(cores >= 1) || !(utilisation > 0) {
		return nil
	}
	threads := 0.0
	if v, ok := p.Features["threads_per_core"]; ok {
		threads = math.Exp(v)
	}
	return &Usage{
		Cores: cores, Busy: utilisation * cores, Waiting: p.Features["io_pressure"], Pressure: p.Features["cpu_pressure"],
		GPUWatts: math.Expm1(p.Features["gpu_watts"]), Switches: voluntary(p), Threads: threads,
	}
}

// voluntary is how many context switches per CPU second a job's threads made to wait; 0: unknown.
func voluntary(p *tuning.Profile) float64 {
	all, counted := p.Features["context_switches"]
	ratio, compared := p.Features["voluntary_ratio"]
	if !counted || !compared {
		return 0
	}
	share := 1 / (1 + math.Exp(-ratio))
	return math.Expm1(all) * share
}
