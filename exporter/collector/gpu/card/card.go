package card

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrInvalid marks a reading that no helper of ours sends.
var ErrInvalid = errors.New("invalid reading")

// Reading is one look at all GPUs of the node; a line of JSON on the helper's output.
type Reading struct {
	At      time.Time `json:"at"`
	Driver  string    `json:"driver,omitempty"` // its version
	Devices []Device  `json:"devices"`
	// Missing are GPUs that are there and could not be read at all, with the reason.
	Missing []string `json:"missing,omitempty"`
}

// Device is what one GPU showed. What is nil could not be read; Missing says why.
type Device struct {
	UUID  string `json:"uuid"`
	Index int    `json:"index"`
	Name  string `json:"name,omitempty"`

	Joules      *float64 `json:"joules,omitempty"` // counter of the driver, since it was loaded
	Watts       *float64 `json:"watts,omitempty"`
	LimitWatts  *float64 `json:"limit_watts,omitempty"` // that is enforced
	Busy        *float64 `json:"busy,omitempty"`        // share of the last sample in which a kernel ran, 0 to 1
	MemoryUsed  *int64   `json:"memory_used_bytes,omitempty"`
	MemoryTotal *int64   `json:"memory_total_bytes,omitempty"`

	// Processes are those with a context on the GPU, or nil where they cannot be seen.
	// Of a GPU that is split they stand at its instances.
	Processes *[]Process `json:"processes,omitempty"`
	Instances []Instance `json:"instances,omitempty"`

	Missing map[string]string `json:"missing,omitempty"` // why, by the name of the key above
}

// Instance is a part of a GPU that was split (MIG).
type Instance struct {
	UUID        string     `json:"uuid"`
	GPU         int        `json:"gpu_instance"`
	Compute     int        `json:"compute_instance"`
	SMs         int        `json:"multiprocessors"`
	MemoryTotal *int64     `json:"memory_total_bytes,omitempty"`
	Processes   *[]Process `json:"processes,omitempty"`
}

// Process is one that uses a GPU, by its id as the exporter's own pid namespace has it.
type Process struct {
	Pid    int    `json:"pid"`
	Memory *int64 `json:"memory_bytes,omitempty"`
}

// Bounds of a reading: a helper that goes mad fills neither memory nor pages.
const (
	maxDevices   = 256
	maxInstances = 64
	maxProcesses = 65536
)

// Decode reads one line. Numbers are finite and not negative, and no GPU stands twice.
func Decode(line []byte) (Reading, error) {
	var r Reading
	if err := json.Unmarshal(line, &r); err != nil {
		return Reading{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.At.IsZero() {
		return Reading{}, fmt.Errorf("%w: it has no time", ErrInvalid)
	}
	if len(r.Devices) > maxDevices {
		return Reading{}, fmt.Errorf("%w: %d GPUs, more than %d", ErrInvalid, len(r.Devices), maxDevices)
	}
	if len(r.Missing) > maxDevices {
		return Reading{}, fmt.Errorf("%w: %d GPUs are missing, more than %d", ErrInvalid, len(r.Missing), maxDevices)
	}
	seen := map[string]bool{}
	for _, d := range r.Devices {
		if d.UUID == "" || seen[d.UUID] {
			return Reading{}, fmt.Errorf("%w: GPU %d has no UUID of its own: %q", ErrInvalid, d.Index, d.UUID)
		}
		seen[d.UUID] = true
		if err := d.Check(); err != nil {
			return Reading{}, fmt.Errorf("%w: GPU %s: %w", ErrInvalid, d.UUID, err)
		}
	}
	return r, nil
}

// Check reports what is wrong with the figures of a GPU: one that is not finite, negative,
// or more than all.
func (d Device) Check() error {
	for name, v := range map[string]*float64{"joules": d.Joules, "watts": d.Watts, "limit_watts": d.LimitWatts, "busy": d.Busy} {
		if v != nil && (*v < 0 || math.IsInf(*v, 0) || math.IsNaN(*v)) {
			return fmt.Errorf("%s is %v", name, *v)
		}
	}
	if d.Busy != nil && *d.Busy > 1 {
		return fmt.Errorf("busy is %v, more than all of the time", *d.Busy)
	}
	if d.MemoryUsed != nil && *d.MemoryUsed < 0 || d.MemoryTotal != nil && *d.MemoryTotal < 0 {
		return errors.New("memory is negative")
	}
	if len(d.Instances) > maxInstances {
		return fmt.Errorf("%d instances, more than %d", len(d.Instances), maxInstances)
	}
	lists := []*[]Process{d.Processes}
	for _, i := range d.Instances {
		if i.SMs < 0 {
			return fmt.Errorf("instance %s has %d multiprocessors", i.UUID, i.SMs)
		}
		lists = append(lists, i.Processes)
	}
	for _, l := range lists {
		if l != nil && len(*l) > maxProcesses {
			return fmt.Errorf("%d processes, more than %d", len(*l), maxProcesses)
		}
	}
	return nil
}
