package probe

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// Errors of Run.
var (
	// ErrPolicy means that the job's policy gives nothing to try or to measure.
	ErrPolicy = errors.New("nothing to probe")
	// ErrProbe means that the owner's own settings could not be measured, so that there
	// is nothing to compare with.
	ErrProbe = errors.New("the short job could not be measured")
)

// candidates is into how many values a range is cut.
const candidates = 5

// Config says what to probe and how.
type Config struct {
	Jobs   Jobs
	Spec   driver.Spec // of the job; its variables make the work short
	Policy tuning.Policy
	Own    tuning.Settings // as its owner would submit it
	Probes int             // at most so many settings beside the owner's
	// Change says settings in the driver's terms.
	Change func(target tuning.Settings) (driver.Change, error)
	// Memory is what survives this process.
	Memory Memory
	// Measure puts joules to the epochs of a job that has ended, as far as somebody
	// measured them; nil: they are unknown.
	Measure func(ctx context.Context, job driver.Job, epochs []tuning.Epoch) []tuning.Epoch
	// Tell is called with each finished trial; nil: not called.
	Tell func(Tried)
	// Poll is how often the output is read, 0 = 100 ms.
	Poll time.Duration
	Log  *slog.Logger // nil = silent
}

// Tried is one short job.
type Tried struct {
	Request driver.RequestID `json:"request"`
	Job     driver.JobID     `json:"job"`
	State   driver.State     `json:"state"`
	Trial   tuning.Trial     `json:"trial"`
	Epochs  []tuning.Epoch   `json:"epochs,omitempty"`
	// Refused says why the owner would not accept it; empty: he would, or it is his own.
	Refused tuning.Reason `json:"refused,omitempty"`
}

// Result is what probing brought.
type Result struct {
	Tried  []Tried
	Chosen tuning.Settings
	Change driver.Change // from the owner's settings to the chosen
	Gain   *search.Gain  // of the best; nil: there is none but the owner's
	Reason tuning.Reason // why no more was tried
}

// Better reports whether the chosen settings are others than the owner's.
func (r Result) Better() bool { return !r.Change.Empty() }

// Run probes. The error is that of ctx where it ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	p, err := newProber(cfg)
	if err != nil {
		return Result{}, err
	}
	known, err := cfg.Memory.Load()
	if err != nil {
		return Result{}, fmt.Errorf("what was measured before: %w", err)
	}
	p.known = known
	if err := p.try(ctx, cfg.Own); err != nil {
		return Result{}, err
	}
	if !p.tried[0].Trial.Reference || p.tried[0].Trial.Failed {
		return Result{}, fmt.Errorf("%w: %s %s under its own settings", ErrProbe, p.tried[0].Job, p.tried[0].State)
	}
	for {
		target, reason := p.study().Next()
		if reason != tuning.ReasonNone {
			return p.result(reason)
		}
		if err := p.try(ctx, target); err != nil {
			return Result{}, err
		}
	}
}

func (p *prober) study() search.Study {
	s := search.Study{Policy: p.Policy, Own: p.Own, Space: p.space}
	s.Policy.Budget.Probes = p.Probes
	for _, t := range p.tried {
		s.Trials = append(s.Trials, t.Trial)
	}
	return s
}

// result is the best of what was tried.
func (p *prober) result(reason tuning.Reason) (Result, error) {
	out := Result{Tried: p.tried, Chosen: p.Own.Clone(), Reason: reason}
	reference := p.tried[0].Trial
	for i := range out.Tried[1:] {
		t := &out.Tried[i+1]
		t.Refused = search.Refusal(t.Trial, reference, p.Policy)
	}
	gain, ok := p.study().Best()
	if !ok {
		return out, nil
	}
	out.Gain = &gain
	if gain.Clear && gain.Expected < 0 {
		var err error
		out.Chosen = gain.Trial.Settings
		if out.Change, err = p.Config.Change(out.Chosen); err != nil {
			return Result{}, err
		}
	}
	return out, nil
}

// prober is one run of probes.
type prober struct {
	Config
	space []search.Dimension
	known []Tried // measured before
	tried []Tried
	lines *lines
}

func newProber(cfg Config) (*prober, error) {
	p := &prober{Config: cfg, space: search.Space(cfg.Policy, cfg.Own, candidates)}
	var err error
	if p.lines, err = newLines(cfg.Policy.Progress); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if len(p.space) == 0 {
		return nil, fmt.Errorf("%w: its stanza has no knob with several values", ErrPolicy)
	}
	if p.Poll <= 0 {
		p.Poll = defaultPoll
	}
	p.Spec.Off = true
	p.Spec.Env = maps.Clone(cfg.Spec.Env)
	return p, nil
}

// runs is how often a job is run that was stopped, or ended while its output was not read.
const runs = 20

// try brings one trial in: from what was measured before, or by a short job.
func (p *prober) try(ctx context.Context, target tuning.Settings) error {
	i := slices.IndexFunc(p.known, func(t Tried) bool { return t.Trial.Settings.Equal(target) })
	if i >= 0 {
		p.add(p.known[i])
		return nil
	}
	change, err := p.Config.Change(target)
	if err != nil {
		return err
	}
	number := len(p.tried)
	for run := range runs {
		request := driver.RequestID(fmt.Sprintf("%s-%d", p.Memory.Name(), number))
		if run > 0 {
			request = driver.RequestID(fmt.Sprintf("%s-%d-%d", p.Memory.Name(), number, run+1))
		}
		tried, whole, err := p.short(ctx, request, target, change)
		if err != nil {
			return err
		}
		if !whole && run+1 < runs {
			p.Log.Info("the job was stopped, or its output was not read, and is run again", "job", string(tried.Job))
			continue
		}
		if err := p.Memory.Save(append(slices.Clone(p.tried), tried)); err != nil {
			return fmt.Errorf("remembering what was measured: %w", err)
		}
		p.add(tried)
		return nil
	}
	return nil
}

func (p *prober) add(t Tried) {
	p.tried = append(p.tried, t)
	if p.Tell != nil {
		p.Tell(t)
	}
}

// short runs one short job to its end and measures it; whole reports whether it came to its
// own end and its epochs were seen as they ended.
func (p *prober) short(ctx context.Context, request driver.RequestID, target tuning.Settings, change driver.Change) (t Tried, whole bool, err error) {
	job, err := p.Jobs.Start(ctx, request, p.Spec, change)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		// It may have been made: repeated, the request finds it.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
		defer cancel()
		if job, err = p.Jobs.Start(late, request, p.Spec, change); err == nil {
			err = p.stop(ctx, job.ID)
		}
		return Tried{}, false, errors.Join(ctx.Err(), err)
	case len(p.tried) > 0 && (errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported)):
		p.Log.Warn("settings that no job can have here", "settings", target.String(), "error", err)
		return Tried{Request: request, State: driver.NotStarted, Trial: tuning.Trial{Settings: target.Clone(), Failed: true}}, true, nil
	default:
		return Tried{}, false, fmt.Errorf("short job %s: %w", request, err)
	}
	p.Log.Info("short job", "job", string(job.ID), "settings", target.String())
	h, err := p.hear(ctx, job)
	if err != nil {
		return Tried{}, false, errors.Join(err, p.stop(ctx, job.ID))
	}
	t = Tried{Request: request, Job: job.ID, State: h.job.State}
	if t.State != driver.Succeeded {
		t.Trial = tuning.Trial{Settings: target.Clone(), Failed: true, Reference: target.Equal(p.Own)}
		return t, t.State != driver.Cancelled && t.State != driver.Lost, nil
	}
	t.Epochs = epochs(h.marks, target, p.Policy.Profile.WarmupEpochs)
	if p.Measure != nil {
		t.Epochs = p.Measure(ctx, h.job, t.Epochs)
	}
	trials := tuning.TrialsOf(t.Epochs, p.Own)
	if len(trials) == 0 {
		t.Trial = tuning.Trial{Settings: target.Clone(), Failed: true, Reference: target.Equal(p.Own)}
		return t, !h.late, nil
	}
	t.Trial = trials[0]
	return t, true, nil
}

// stopping is how long the stop of a short job may take that is not wanted any more.
const stopping = 30 * time.Second

// stop ends a short job, even where ctx has ended.
func (p *prober) stop(ctx context.Context, id driver.JobID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopping)
	defer cancel()
	if err := p.Jobs.Stop(ctx, id); err != nil && !errors.Is(err, driver.ErrNotFound) {
		return fmt.Errorf("short job %s could not be stopped, and runs on: %w", id, err)
	}
	return nil
}
