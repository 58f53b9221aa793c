package gpu

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/exporter/collector/gpu/card"
)

// SMI reads one nvidia-smi that lives as long as the exporter, and asks another, seldom,
// which processes use a GPU. It has no energy counter that is worth the name, so that
// joules are integrated.
type SMI struct {
	Path     string        // of the program; default nvidia-smi
	Interval time.Duration // between readings, default 1 s, at most 2 s
	Every    time.Duration // between questions about processes, default 10 s
}

// Name is "nvidia-smi".
func (SMI) Name() string { return "nvidia-smi" }

// fields are asked for in this order; line parses them.
const fields = "index,uuid,name,power.draw,enforced.power.limit,utilization.gpu,memory.used,memory.total"

// Run hands on a reading for each round of lines.
func (s SMI) Run(ctx context.Context, emit func(card.Reading)) error {
	path, interval, every := s.Path, pace(s.Interval), s.Every
	if path == "" {
		path = "nvidia-smi"
	}
	if every <= 0 {
		every = 10 * time.Second
	}
	var round []card.Device
	var missing []string // lines of the round that tell of no GPU
	var unread error     // the last of them
	bad, most := 0, 0    // of them since the last good line, and GPUs of a round so far
	var processes map[string][]card.Process
	var asked time.Time
	argv := []string{path, "--query-gpu=" + fields, "--format=csv,noheader,nounits", fmt.Sprintf("-lms=%d", interval.Milliseconds())}
	err := stream(ctx, 5*interval+5*time.Second, argv, func(line []byte) error {
		d, err := parseSMI(string(line))
		if err != nil {
			// It is one GPU's, such as one that fell off the bus, unless all are so.
			if bad++; bad > someBad+2*most {
				return err
			}
			if unread = err; !slices.Contains(missing, err.Error()) {
				missing = append(missing, err.Error())
			}
			return nil
		}
		bad = 0
		now := time.Now()
		if len(round) > 0 && slices.ContainsFunc(round, func(o card.Device) bool { return o.UUID == d.UUID }) {
			emit(card.Reading{At: now, Devices: round, Missing: missing}) // the first of the next round
			round, missing = nil, nil
		}
		if now.Sub(asked) >= every {
			asked = now
			processes = askProcesses(ctx, path)
		}
		if processes != nil {
			list := slices.Clone(processes[d.UUID])
			d.Processes = &list
		}
		round = append(round, d)
		most = max(most, len(round))
		return nil
	})
	if bad > 0 {
		return errors.Join(err, unread)
	}
	return err
}

// someBad is how many lines in a row may show no GPU before the first that does.
const someBad = 16

// askProcesses returns nil where no answer comes in time.
func askProcesses(ctx context.Context, path string) map[string][]card.Process {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--query-compute-apps=gpu_uuid,pid,used_memory", "--format=csv,noheader,nounits")
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	apps, err := parseApps(string(out))
	if err != nil {
		return nil
	}
	return apps
}

// mebi is the unit in which nvidia-smi shows memory.
const mebi = 1 << 20

// parseSMI reads a line such as
// "0, GPU-1f0c…, NVIDIA H100 80GB HBM3, 112.43, 700.00, 35, 5123, 81559".
// What a GPU cannot tell stands in brackets: [N/A], [Not Supported].
func parseSMI(line string) (card.Device, error) {
	cells, err := cellsOf(line, strings.Count(fields, ",")+1)
	if err != nil {
		return card.Device{}, err
	}
	index, err := strconv.Atoi(cells[0])
	if err != nil || index < 0 || !strings.HasPrefix(cells[1], "GPU-") {
		return card.Device{}, fmt.Errorf("%w: nvidia-smi wrote %q: want an index and a UUID", card.ErrInvalid, clip(line))
	}
	d := card.Device{Index: index, UUID: cells[1], Name: cells[2], Missing: map[string]string{"joules": "nvidia-smi has no energy counter"}}
	number := func(name, cell string, scale float64) *float64 {
		if strings.HasPrefix(cell, "[") || cell == "N/A" {
			d.Missing[name] = strings.Trim(cell, "[]")
			return nil
		}
		v, perr := strconv.ParseFloat(cell, 64)
		if perr != nil || v < 0 || math.IsInf(v, 0) || math.IsNaN(v) {
			err = fmt.Errorf("%w: nvidia-smi wrote %q: %s is %q, want a number", card.ErrInvalid, clip(line), name, cell)
			return nil
		}
		v *= scale
		return &v
	}
	d.Watts = number("watts", cells[3], 1)
	d.LimitWatts = number("limit_watts", cells[4], 1)
	if d.Busy = number("busy", cells[5], 1); d.Busy != nil {
		*d.Busy /= 100
	}
	d.MemoryUsed = bytesOf(number("memory_used_bytes", cells[6], mebi))
	d.MemoryTotal = bytesOf(number("memory_total_bytes", cells[7], mebi))
	if err != nil {
		return card.Device{}, err
	}
	return d, d.Check()
}

func bytesOf(v *float64) *int64 {
	if v == nil || *v > math.MaxInt64/2 {
		return nil
	}
	n := int64(*v)
	return &n
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
			return nil, fmt.Errorf("%w: nvidia-smi wrote %q: want a process id", card.ErrInvalid, clip(line))
		}
		p := card.Process{Pid: pid}
		if v, err := strconv.ParseFloat(cells[2], 64); err == nil && v >= 0 {
			v *= mebi
			p.Memory = bytesOf(&v)
		}
		out[cells[0]] = append(out[cells[0]], p)
	}
	return out, nil
}

func cellsOf(line string, n int) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.TrimLeadingSpace, r.LazyQuotes = true, true
	cells, err := r.Read()
	if err != nil || len(cells) != n {
		return nil, errors.Join(fmt.Errorf("%w: nvidia-smi wrote %q: want %d cells", card.ErrInvalid, clip(line), n), err)
	}
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells, nil
}

// clip bounds what of a foreign line stands in an error.
func clip(line string) string {
	line = strings.TrimSpace(line)
	if len(line) > 120 {
		return line[:120] + "…"
	}
	return line
}
