package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// SMI reads one nvidia-smi that lives as long as the exporter, and asks another one, seldom,
// which processes use a GPU. It has no usable energy counter, so joules are integrated.
type SMI struct {
	Path     string        // of the program; default nvidia-smi
	Interval time.Duration // between readings, default 1 s, at most 2 s
}

// Name is "nvidia-smi".
func (SMI) Name() string { return "nvidia-smi" }

const (
	// smiFields are asked for in this order; parseSMI reads them.
	smiFields = "index,uuid,name,power.draw,enforced.power.limit,utilization.gpu,memory.used,memory.total"
	// someBad is how many lines in a row may show no GPU before the first that does.
	someBad = 16
	// processesEvery is the time between questions about processes, and processesSoon that while
	// the last answer does not fit what is seen.
	processesEvery = 10 * time.Second
	processesSoon  = 2 * time.Second
	// mebi is the unit in which nvidia-smi shows memory.
	mebi = 1 << 20
)

// Run passes on a reading for each round of lines.
func (s SMI) Run(ctx context.Context, emit func(card.Reading)) error {
	path, interval := cmp.Or(s.Path, "nvidia-smi"), pace(s.Interval)
	var round card.Reading
	var unread error  // the last line that shows no GPU
	bad, most := 0, 0 // such lines since the last good one, and GPUs of a round so far
	var processes map[string][]card.Process
	var asked time.Time
	futile := false // the last question came early and changed nothing
	argv := []string{path, "--query-gpu=" + smiFields, "--format=csv,noheader,nounits", fmt.Sprintf("-lms=%d", interval.Milliseconds())}
	err := stream(ctx, 5*interval+5*time.Second, argv, func(line []byte) error {
		d, err := parseSMI(string(line))
		if err != nil {
			// It is one GPU's, such as one that fell off the bus, unless all are so.
			if bad++; bad > someBad+2*most {
				return err
			}
			if unread = err; !slices.Contains(round.Missing, err.Error()) {
				round.Missing = append(round.Missing, err.Error())
			}
			return nil
		}
		bad = 0
		now := time.Now()
		if slices.ContainsFunc(round.Devices, func(o card.Device) bool { return o.UUID == d.UUID }) { // the first of the next round
			emit(round)
			round = card.Reading{}
		}
		if age := now.Sub(asked); age >= processesEvery || age >= processesSoon && !futile && outdated(d, processes[d.UUID]) {
			asked = now
			if now := askProcesses(ctx, path); now != nil { // else those of before are likely still there
				processes = now
			}
			futile = age < processesEvery && outdated(d, processes[d.UUID])
		}
		if processes != nil {
			list := slices.Clone(processes[d.UUID])
			d.Processes = &list
		}
		round.Devices = append(round.Devices, d)
		most = max(most, len(round.Devices))
		return nil
	})
	if bad > 0 {
		return errors.Join(err, unread)
	}
	return err
}

// outdated reports whether a GPU works for none of the processes that were listed, or one of them
// has ended.
func outdated(d card.Device, listed []card.Process) bool {
	return len(listed) == 0 && d.Busy != nil && *d.Busy > 0 || slices.ContainsFunc(listed, func(p card.Process) bool {
		_, err := os.Stat("/proc/" + strconv.Itoa(p.Pid))
		return errors.Is(err, fs.ErrNotExist)
	})
}

// askProcesses returns nil if no answer comes in time.
func askProcesses(ctx context.Context, path string) map[string][]card.Process {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // with an interval less than collector.Bridge: no reading is taken meanwhile
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
	cmd.WaitDelay = 500 * time.Millisecond
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	apps, _ := parseApps(string(out)) // nil with an error
	return apps
}

// parseSMI reads a line such as
// "0, GPU-1f0c…, NVIDIA H100 80GB HBM3, 112.43, 700.00, 35, 5123, 81559".
// What a GPU does not report is in brackets: [N/A], [Not Supported].
func parseSMI(line string) (card.Device, error) {
	cells, err := cellsOf(line, strings.Count(smiFields, ",")+1)
	if err != nil {
		return card.Device{}, err
	}
	index, err := strconv.Atoi(cells[0])
	if err != nil || index < 0 || !strings.HasPrefix(cells[1], "GPU-") {
		return card.Device{}, smiError(line, "an index and a UUID")
	}
	d := card.Device{Index: index, UUID: cells[1], Name: cells[2], Missing: map[string]string{"joules": "nvidia-smi has no energy counter"}}
	number := func(name, cell string, scale float64) *float64 {
		if strings.HasPrefix(cell, "[") || cell == "N/A" {
			d.Missing[name] = strings.Trim(cell, "[]")
			return nil
		}
		v, perr := strconv.ParseFloat(cell, 64)
		if perr != nil || !(v >= 0) {
			err = smiError(line, "a number for "+name)
			return nil
		}
		return new(v * scale)
	}
	d.Watts = number("watts", cells[3], 1)
	d.LimitWatts = number("limit_watts", cells[4], 1)
	if d.Busy = number("busy", cells[5], 1); d.Busy != nil {
		*d.Busy /= 100
	}
	d.MemoryUsed = bytesOf(number("memory_used_bytes", cells[6], mebi))
	d.MemoryTotal = bytesOf(number("memory_total_bytes", cells[7], mebi))
	if err == nil {
		err = d.Check()
	}
	return d, err
}

func bytesOf(v *float64) *int64 {
	if v == nil || !(*v <= math.MaxInt64/2) {
		return nil
	}
	return new(int64(*v))
}

// parseApps reads lines such as "GPU-1f0c…, 4711, 5012".
func parseApps(text string) (map[string][]card.Process, error) {
	out := map[string][]card.Process{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells, err := cellsOf(line, 3)
		if err != nil {
			return nil, err
		}
		pid, err := strconv.Atoi(cells[1])
		if err != nil || pid <= 0 {
			return nil, smiError(line, "a process id")
		}
		p := card.Process{Pid: pid}
		if v, err := strconv.ParseFloat(cells[2], 64); err == nil && v >= 0 {
			p.Memory = bytesOf(new(v * mebi))
		}
		out[cells[0]] = append(out[cells[0]], p)
	}
	return out, nil
}

func cellsOf(line string, n int) ([]string, error) {
	cells := strings.Split(line, ",")
	if len(cells) != n {
		return nil, smiError(line, fmt.Sprint(n, " cells"))
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, nil
}

func smiError(line, want string) error {
	return fmt.Errorf("%w: nvidia-smi wrote %.120q: want %s", card.ErrInvalid, strings.TrimSpace(line), want)
}
