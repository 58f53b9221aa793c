package record

import (
	"fmt"
	"math"
	"time"

	"github.com/prometheus/procfs"

	"pitchpipe/controller/profile"
	"pitchpipe/controller/tuning"
	"pitchpipe/exporter/api"
)

// Load is what the whole machine has done since it was started, in CPU seconds.
type Load struct {
	Busy  float64 // of all
	Steal float64 // that the hypervisor took
	Cores int     // of the machine
}

// ReadLoad reads the machine's load from /proc/stat.
func ReadLoad() (Load, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return Load{}, fmt.Errorf("read the machine's load: %w", err)
	}
	stat, err := proc.Stat()
	if err != nil {
		return Load{}, fmt.Errorf("read the machine's load: %w", err)
	}
	t := stat.CPUTotal
	return Load{Busy: t.User + t.Nice + t.System + t.IRQ + t.SoftIRQ, Steal: t.Steal, Cores: len(stat.CPU)}, nil
}

// Neighbours is what else went on while a run was made.
type Neighbours struct {
	Others    float64 `json:"others"` // cores that others kept busy, on average
	Steal     float64 `json:"steal"`  // share of the machine's CPU time that the hypervisor took
	NodeCores int     `json:"node_cores"`
	Disturbed string  `json:"disturbed,omitempty"` // why the run does not show the command alone; empty = nothing disturbed it
}

// disturbance orders runs by what others did meanwhile, in cores; +Inf: unknown.
func (n *Neighbours) disturbance() float64 {
	if n == nil {
		return math.Inf(1)
	}
	return n.Others + n.Steal*float64(n.NodeCores)
}

// neighbours compares the machine's load before and after a run with the CPU seconds
// that the run took. Whether it was disturbed is up to the controller's own rule.
func neighbours(before, after Load, wall, own float64, settings tuning.Settings) *Neighbours {
	cores := settings[tuning.Cores].Float()
	if !(cores > 0) {
		cores = float64(after.Cores)
	}
	begin := time.Unix(0, 0).UTC()
	end := begin.Add(time.Duration(wall * float64(time.Second)))
	sample := func(at time.Time, l Load, cpu float64) api.Sample {
		return api.Sample{Time: at, Values: map[string]float64{
			api.ColNodeBusy: l.Busy, api.ColNodeSteal: l.Steal, api.ColCPUSeconds: cpu, api.ColAllocatedCores: cores,
		}}
	}
	w := api.Window{Samples: []api.Sample{sample(begin, before, 0), sample(end, after, own)}}
	why := profile.Disturbed(w, tuning.Epoch{Start: begin, End: end}, profile.Spec{NodeCores: after.Cores})
	return &Neighbours{
		Others:    max(0, after.Busy-before.Busy-own) / wall,
		Steal:     max(0, after.Steal-before.Steal) / (wall * float64(after.Cores)),
		NodeCores: after.Cores, Disturbed: string(why),
	}
}
