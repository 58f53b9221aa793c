package record

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

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

// ErrLoad means that the load of the machine is unknown.
var ErrLoad = errors.New("the machine's load cannot be read")

// ticks in which /proc/stat counts make a second on every architecture.
const ticks = 100

// ReadLoad reads the machine's load from /proc/stat.
func ReadLoad() (Load, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return Load{}, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	return ParseLoad(string(text))
}

// ParseLoad reads the text of /proc/stat: the line cpu with the ticks that went into
// user, nice, system, idle, iowait, irq, softirq and steal, and a line cpuN for each core.
func ParseLoad(text string) (Load, error) {
	var out Load
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || !strings.HasPrefix(fields[0], "cpu"):
		case fields[0] != "cpu":
			out.Cores++
		case len(fields) < 9:
			return Load{}, fmt.Errorf("%w: %.80q has fewer than eight numbers", ErrLoad, line)
		default:
			for i, field := range fields[1:9] {
				n, err := strconv.ParseUint(field, 10, 64)
				if err != nil {
					return Load{}, fmt.Errorf("%w: %.80q: %q is no number of ticks", ErrLoad, line, field)
				}
				switch i {
				case 0, 1, 2, 5, 6:
					out.Busy += float64(n) / ticks
				case 7:
					out.Steal = float64(n) / ticks
				}
			}
		}
	}
	if out.Cores == 0 {
		return Load{}, fmt.Errorf("%w: no line is about a core", ErrLoad)
	}
	return out, nil
}

// Neighbours is what else went on while a run was made.
type Neighbours struct {
	Others    float64 `json:"others"` // cores that others kept busy, in the mean
	Steal     float64 `json:"steal"`  // share of the machine's CPU time that the hypervisor took
	NodeCores int     `json:"node_cores"`
	Disturbed string  `json:"disturbed,omitempty"` // why the run does not show the command alone; empty = nothing disturbed it
}

// disturbance orders runs by how much others did meanwhile, in cores; +Inf: unknown.
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
