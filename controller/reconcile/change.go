package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ErrNoCarrier means that a knob has no way to reach the job.
var ErrNoCarrier = errors.New("knob has no carrier")

// Change translates the difference between target and the owner's settings for the driver.
func Change(p tuning.Policy, own, target tuning.Settings) (driver.Change, error) {
	var c driver.Change
	for _, name := range own.Diff(target) {
		v, ok := target[name]
		if !ok {
			continue // not set in the target: as the job file has it
		}
		if err := put(&c, p, name, v); err != nil {
			return driver.Change{}, err
		}
	}
	return c, nil
}

func put(c *driver.Change, p tuning.Policy, name string, v tuning.Value) error {
	carried := true
	switch name {
	case tuning.Cores:
		c.Cores = v.Int()
	case tuning.Memory:
		c.MemoryBytes = int64(v.Float())
	default:
		carried = false
	}
	set := func(to *map[string]string, key string) {
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[key], carried = v.String(), true
	}
	k, _ := p.Knob(name)
	if k.Env != "" {
		set(&c.Env, k.Env)
	}
	if k.Arg != "" {
		set(&c.Args, k.Arg)
	}
	if k.Live {
		set(&c.Live, name)
	}
	if !carried {
		return fmt.Errorf("knob %q: %w", name, ErrNoCarrier)
	}
	return nil
}

// SettingsOf is the inverse of Change.
func SettingsOf(p tuning.Policy, own tuning.Settings, c driver.Change) tuning.Settings {
	out := own.Clone()
	if c.Cores > 0 {
		out[tuning.Cores] = tuning.Number(float64(c.Cores))
	}
	if c.MemoryBytes > 0 {
		out[tuning.Memory] = tuning.Number(float64(c.MemoryBytes))
	}
	for _, k := range p.Knobs {
		if v, ok := c.Env[k.Env]; ok && k.Env != "" {
			out[k.Name] = tuning.ParseValue(v)
		}
		if v, ok := c.Args[k.Arg]; ok && k.Arg != "" {
			out[k.Name] = tuning.ParseValue(v)
		}
		if v, ok := c.Live[k.Name]; ok {
			out[k.Name] = tuning.ParseValue(v)
		}
	}
	return out
}

// NewIntent makes the intent that takes the job from its present attempt to target.
func NewIntent(id string, job driver.Job, p tuning.Policy, own, target tuning.Settings, note string) (driver.Intent, error) {
	change, err := Change(p, own, target)
	if err != nil {
		return driver.Intent{}, err
	}
	in := driver.Intent{
		ID: id, Job: job.ID, Attempt: job.Attempt, Fingerprint: job.Fingerprint, Change: change, Note: note,
	}
	if c := p.Checkpoint; c != nil {
		in.Checkpoint = &driver.Checkpoint{Signal: c.Signal, Grace: c.Grace, Exit: c.Exit, Done: c.Done}
	}
	return in, nil
}

// Advancer takes the steps of an intent.
type Advancer interface {
	Advance(ctx context.Context, intent driver.Intent) (driver.Step, error)
}

// Step takes one step. The Reason is why the intent ended without its change. After an error
// the step must be taken again.
func Step(ctx context.Context, d Advancer, in driver.Intent) (driver.Step, tuning.Reason, error) {
	step, err := d.Advance(ctx, in)
	if err == nil {
		return step, map[driver.StepKind]tuning.Reason{
			driver.StepAbandoned:  tuning.ReasonGraceExpired,
			driver.StepFinished:   tuning.ReasonFinished,
			driver.StepNoRoom:     tuning.ReasonNoRoom,
			driver.StepSuperseded: tuning.ReasonOwnerChanged,
		}[step.Kind], nil
	}
	for _, x := range []struct {
		err    error
		kind   driver.StepKind
		reason tuning.Reason
	}{
		{driver.ErrDenied, driver.StepSuperseded, tuning.ReasonDenied},
		{driver.ErrUnsupported, driver.StepSuperseded, tuning.ReasonUnsupported},
		{driver.ErrInvalid, driver.StepSuperseded, tuning.ReasonUnsupported},
		{driver.ErrNoRoom, driver.StepNoRoom, tuning.ReasonNoRoom},
		{driver.ErrConflict, driver.StepSuperseded, tuning.ReasonOwnerChanged},
		{driver.ErrNotFound, driver.StepSuperseded, tuning.ReasonLost},
	} {
		if errors.Is(err, x.err) {
			return driver.Step{Kind: x.kind, Attempt: in.Attempt, Detail: strings.TrimPrefix(err.Error(), fmt.Sprintf("advance %s of %s: ", in.ID, in.Job))}, x.reason, nil
		}
	}
	// ErrTransient, ErrUnknown and what has no name: look again.
	return driver.Step{}, tuning.ReasonNone, fmt.Errorf("advance %s: %w", in.Job, err)
}
