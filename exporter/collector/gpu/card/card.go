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

	// Processes are those with a context on the GPU, or nil if they cannot be seen.
	// Those of a split GPU are in its instances.
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

// Decode reads one line. Numbers are finite and not negative, and no UUID occurs twice.
func Decode(line []byte) (Reading, error) {
	var r Reading
	if err := json.Unmarshal(line, &r); err != nil {
		return Reading{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if r.At.IsZero() {
		return Reading{}, fmt.Errorf("%w: it has no time", ErrInvalid)
	}
	seen := map[string]bool{}
	for _, d := range r.Devices {
		if d.UUID == "" || seen[d.UUID] {
			return Reading{}, fmt.Errorf("%w: GPU %d has no unique UUID: %q", ErrInvalid, d.Index, d.UUID)
		}
		seen[d.UUID] = true
		if err := d.Check(); err != nil {
			return Reading{}, err
		}
	}
	return r, nil
}

// Check returns ErrInvalid for figures that are not finite, negative, or more than all.
func (d Device) Check() error {
	for name, v := range map[string]*float64{"joules": d.Joules, "watts": d.Watts, "limit_watts": d.LimitWatts, "busy": d.Busy} {
		if v != nil && !(*v >= 0 && *v <= math.MaxFloat64) {
			return fmt.Errorf("%w: GPU %s: %s is %v", ErrInvalid, d.UUID, name, *v)
		}
	}
	if d.Busy != nil && *d.Busy > 1 {
		return fmt.Errorf("%w: GPU %s: busy is %v, more than all of the time", ErrInvalid, d.UUID, *d.Busy)
	}
	for _, v := range []*int64{d.MemoryUsed, d.MemoryTotal} {
		if v != nil && *v < 0 {
			return fmt.Errorf("%w: GPU %s: memory is negative", ErrInvalid, d.UUID)
		}
	}
	return nil
}
