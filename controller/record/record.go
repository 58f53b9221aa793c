package record

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver/durable"
	"pitchpipe/exporter/api"
)

// Meter counts for jobs by the id in their environment; *api.Client is
// one.
type Meter interface {
	Node(ctx context.Context) (api.Node, error)
	Window(ctx context.Context, jobID string, attempt int, after uint64) (api.Window, error)
}

// Config is what a recording needs besides its plan.
type Config struct {
	Dir     string   // of the tables; made where it is not there
	Tag     string   // of this recording among those made on the machine at the same time
	Meter   Meter    // nil: only times and epochs are measured
	Environ []string // that commands inherit
	CPUs    []int    // that commands may use, in the order in which the knob cores takes them
	// Cgroup makes the cgroup of a run, whose processes may use these CPUs, none: all; nil: the
	// meter knows runs by their environment alone.
	Cgroup   func(ctx context.Context, name string, cpus []int) (Cgroup, error)
	Load     func() (Load, error) // of the machine; nil: what others did is unknown
	Within   time.Duration        // no run begins later than this; 0 = no limit
	Progress func(done, total int, what string)
	Log      *slog.Logger
}

// job is what the meter and the machine call a run.
func (cfg Config) job(c Cell) string { return c.ID + "-" + cfg.Tag }

// Run is one run that has ended.
type Run struct {
	Cell    Cell      `json:"cell"`
	Machine string    `json:"machine"`
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds"`
	Failed  string    `json:"failed,omitempty"` // why it is not a measurement
	Epochs  []Epoch   `json:"epochs,omitempty"`
	Source  string    `json:"energy_source,omitempty"`
	Watched bool      `json:"watched,omitempty"` // the samples begin before the run does

	CPUSeconds float64      `json:"cpu_seconds,omitempty"` // of the command and of the children that it waited for
	Neighbours *Neighbours  `json:"neighbours,omitempty"`  // nil: not known
	Attempts   int          `json:"attempts,omitempty"`    // this one included, and those before that others disturbed
	Samples    []api.Sample `json:"samples,omitempty"`
	Missing    []string     `json:"missing,omitempty"` // what could not be measured, and why
}

// Epoch is a line of progress.
type Epoch struct {
	Number  int      `json:"number"`
	Seconds float64  `json:"seconds"` // since the start
	Loss    *float64 `json:"loss,omitempty"`
	Quality *float64 `json:"quality,omitempty"`
}

// Result is what a recording came to.
type Result struct {
	Files   []string `json:"files"`
	Runs    int      `json:"runs"`   // of the plan
	Made    int      `json:"made"`   // now
	Kept    int      `json:"kept"`   // from before
	Failed  int      `json:"failed"` // of those made
	Left    int      `json:"left"`   // not made: the time was over
	Again   int      `json:"again"`  // among those made and kept: made more than once, since others disturbed them
	Noisy   int      `json:"noisy"`  // likewise: disturbed all the same, and marked so
	Missing []string `json:"missing,omitempty"`
}

// Record makes the runs of the plan of which the folder holds no measurement yet, and writes
// the tables. Where ctx ends, the run under way is dropped, the tables of what there is are
// written, and the error is that of ctx.
func Record(ctx context.Context, p Plan, cfg Config) (Result, error) {
	if err := p.Check(); err != nil {
		return Result{}, err
	}
	for _, v := range p.Knobs[tuning.Cores] {
		if n, err := strconv.Atoi(v); err == nil && n > len(cfg.CPUs) {
			return Result{}, fmt.Errorf("%w: knob cores: %d, and this process may use %d CPUs", ErrPlan, n, len(cfg.CPUs))
		}
	}
	if err := cfg.open(p); err != nil {
		return Result{}, err
	}
	cells := p.Cells()
	out := Result{Runs: len(cells)}
	machine := p.Machine
	if cfg.Meter != nil && machine == "" {
		node, err := cfg.Meter.Node(ctx)
		if err != nil {
			return out, fmt.Errorf("ask the meter: %w", err)
		}
		machine = node.MachineKind
	}
	if machine == "" {
		machine = "unknown/" + strconv.Itoa(len(cfg.CPUs))
	}
	var runs []Run
	var ended error
	begun := time.Now()
	for i, c := range cells {
		var r Run
		err := durable.ReadJSON(cfg.path(c), &r)
		switch {
		case err == nil && r.Failed == "":
			out.Kept++
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return out, err
		case cfg.Within > 0 && time.Since(begun) >= cfg.Within:
			out.Left++
			continue // what was kept from before is in the tables all the same
		default:
			cfg.Progress(i, len(cells), c.ID)
			if r, ended = execute(ctx, p, c, cfg); ended == nil {
				r.Machine = machine
				if err := durable.WriteJSON(cfg.path(c), r, mode); err != nil {
					return out, err
				}
				out.Made++
			}
		}
		if ended != nil {
			break
		}
		out.count(r, cfg.Log)
		runs = append(runs, r)
	}
	slices.Sort(out.Missing)
	out.Missing = slices.Compact(out.Missing)
	var err error
	out.Files, err = cfg.write(tables(p, runs))
	if ended == nil {
		cfg.Progress(len(cells), len(cells), "done")
	}
	return out, errors.Join(ended, err)
}

func (out *Result) count(r Run, log *slog.Logger) {
	if r.Failed != "" {
		out.Failed++
		log.Warn("a run failed", "run", r.Cell.ID, "why", r.Failed)
	}
	if r.Attempts > 1 {
		out.Again++
	}
	if r.Neighbours != nil && r.Neighbours.Disturbed != "" {
		out.Noisy++
		log.Debug("a run was disturbed", "run", r.Cell.ID, "why", r.Neighbours.Disturbed)
	}
	out.Missing = append(out.Missing, r.Missing...)
}
