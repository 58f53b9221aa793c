package probe

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"pitchpipe/controller/search"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/exporter/api"
	"pitchpipe/exporter/api/progress"
)

var (
	// ErrPolicy means that the job's policy gives nothing to try or to measure.
	ErrPolicy = errors.New("nothing to probe")
	// ErrProbe means that the owner's own settings could not be measured, so that there
	// is nothing to compare with.
	ErrProbe = errors.New("the short job could not be measured")
)

const (
	rangeValues = 5                // that a range is cut into
	runs        = 20               // of a job that is stopped, or ends while its output is not read
	stopWait    = 30 * time.Second // for the stop of a short job
)

// Jobs starts short jobs. Start with the same request returns the same job.
type Jobs interface {
	Start(ctx context.Context, id driver.RequestID, s driver.Spec, c driver.Change) (driver.Job, error)
	Get(ctx context.Context, id driver.JobID) (driver.Job, error)
	Stop(ctx context.Context, id driver.JobID) error
	Logs(ctx context.Context, id driver.JobID, offset int64) (io.ReadCloser, error)
}

// Config says what to probe and how.
type Config struct {
	Jobs   Jobs
	Spec   driver.Spec // of the job; its variables make the work short
	Policy tuning.Policy
	Own    tuning.Settings // as its owner would submit it
	Probes int             // at most so many settings besides the owner's
	File   string          // keeps the results
	// Change translates settings for the driver.
	Change func(target tuning.Settings) (driver.Change, error)
	// Measure adds the joules to the epochs of an ended job, as far as they were measured.
	Measure func(ctx context.Context, job driver.Job, epochs []tuning.Epoch) []tuning.Epoch
	// Tell is called with each finished trial.
	Tell func(Tried)
	Log  *slog.Logger
}

// Tried is one short job.
type Tried struct {
	Request driver.RequestID `json:"request"`
	Job     driver.JobID     `json:"job"`
	State   driver.State     `json:"state"`
	Trial   tuning.Trial     `json:"trial"`
	Epochs  []tuning.Epoch   `json:"epochs,omitempty"`
	Refused tuning.Reason    `json:"refused,omitempty"` // why the owner would not accept it
}

// Result is what probing brought.
type Result struct {
	Tried  []Tried
	Change driver.Change // from the owner's settings to the chosen
	Gain   *search.Gain  // of the best; nil: none but the owner's
	Reason tuning.Reason // why no more was tried
}

// Better reports whether the chosen settings are others than the owner's.
func (r Result) Better() bool { return !r.Change.Empty() }

const version = 1

type memory struct {
	Version int     `json:"version"`
	Name    string  `json:"name"` // begins the names of the requests; no two runs of probes have the same
	Tried   []Tried `json:"tried"`
}

type prober struct {
	Config
	space   []search.Dimension
	matcher *progress.Matcher
	memory  memory
	tried   []Tried
}

// Run probes. The error is that of ctx where it ended.
func Run(ctx context.Context, cfg Config) (Result, error) {
	p := &prober{Config: cfg, space: search.Space(cfg.Policy, cfg.Own, rangeValues)}
	var err error
	if p.matcher, err = newMatcher(cfg.Policy.Progress); err != nil {
		return Result{}, fmt.Errorf("%w: %w", ErrPolicy, err)
	}
	if len(p.space) == 0 {
		return Result{}, fmt.Errorf("%w: its stanza has no knob with several values", ErrPolicy)
	}
	p.Spec.Off = true
	p.Spec.Env = maps.Clone(cfg.Spec.Env)
	if err := p.recall(); err != nil {
		return Result{}, fmt.Errorf("what was measured before: %w", err)
	}
	for target, reason := cfg.Own, tuning.ReasonNone; reason == tuning.ReasonNone; target, reason = p.study().Next() {
		if err := p.try(ctx, target); err != nil {
			return Result{}, err
		}
		if own := p.tried[0]; !own.Trial.Reference || own.Trial.Failed {
			return Result{}, fmt.Errorf("%w: %s %s under its own settings", ErrProbe, own.Job, own.State)
		}
	}
	return p.result()
}

// recall reads the file, or makes a new one.
func (p *prober) recall() error {
	err := durable.ReadJSON(p.File, &p.memory)
	if errors.Is(err, fs.ErrNotExist) {
		p.memory = memory{Version: version, Name: "probe-" + strings.ToLower(rand.Text()[:8])}
		return errors.Join(durable.MkdirAll(filepath.Dir(p.File), 0o700), p.save())
	}
	if err == nil && (p.memory.Version != version || p.memory.Name == "") {
		err = fmt.Errorf("%s: version %d is unknown", p.File, p.memory.Version)
	}
	return err
}

func (p *prober) save() error { return durable.WriteJSON(p.File, p.memory, 0o600) }

func (p *prober) study() search.Study {
	s := search.Study{Policy: p.Policy, Own: p.Own, Space: p.space, Trials: tuning.Each(p.tried, func(t Tried) tuning.Trial { return t.Trial })}
	s.Policy.Budget.Probes = p.Probes
	return s
}

// result returns the best of the tried settings.
func (p *prober) result() (Result, error) {
	out := Result{Tried: p.tried}
	_, out.Reason = p.study().Next()
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
	var err error
	if gain.Clear && gain.Expected < 0 {
		out.Change, err = p.Config.Change(gain.Trial.Settings)
	}
	return out, err
}

// try adds one trial: as it was measured before, or by a short job.
func (p *prober) try(ctx context.Context, target tuning.Settings) error {
	known := slices.IndexFunc(p.memory.Tried, func(t Tried) bool { return t.Trial.Settings.Equal(target) })
	tried, whole := Tried{}, known >= 0
	if whole {
		tried = p.memory.Tried[known]
	}
	change, err := p.Config.Change(target)
	for run := 1; !whole && run <= runs && err == nil; run++ {
		request := fmt.Sprintf("%s-%d", p.memory.Name, len(p.tried))
		if run > 1 {
			request += fmt.Sprintf("-%d", run)
			p.Log.Info("the job was stopped, or its output was not read, and is run again", "job", string(tried.Job))
		}
		tried, whole, err = p.short(ctx, driver.RequestID(request), target, change)
	}
	if err != nil {
		return err
	}
	p.tried = append(p.tried, tried)
	if known < 0 {
		p.memory.Tried = slices.Clone(p.tried)
		if err := p.save(); err != nil {
			return fmt.Errorf("remembering what was measured: %w", err)
		}
	}
	p.Tell(tried)
	return nil
}

// short runs one short job to its end and measures it; whole reports whether it came to its
// own end and its epochs were seen as they ended.
func (p *prober) short(ctx context.Context, request driver.RequestID, target tuning.Settings, change driver.Change) (t Tried, whole bool, err error) {
	t = Tried{Request: request, State: driver.NotStarted, Trial: tuning.Trial{Settings: target.Clone(), Failed: true, Reference: target.Equal(p.Own)}}
	job, err := p.Jobs.Start(ctx, request, p.Spec, change)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		// It may have been made: repeated, the request finds it.
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
		defer cancel()
		if job, err = p.Jobs.Start(late, request, p.Spec, change); err == nil {
			err = p.stop(ctx, job.ID)
		}
		return t, false, errors.Join(ctx.Err(), err)
	case len(p.tried) > 0 && (errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported)):
		p.Log.Warn("settings that no job can have here", "settings", target.String(), "error", err)
		return t, true, nil
	default:
		return t, false, fmt.Errorf("short job %s: %w", request, err)
	}
	p.Log.Info("short job", "job", string(job.ID), "settings", target.String())
	job, marks, err := p.follow(ctx, job)
	if err != nil {
		return t, false, errors.Join(err, p.stop(ctx, job.ID))
	}
	if t.Job, t.State = job.ID, job.State; t.State != driver.Succeeded {
		return t, t.State != driver.Cancelled && t.State != driver.Lost, nil
	}
	t.Epochs = p.Measure(ctx, job, epochs(marks, target, p.Policy.Profile.WarmupEpochs))
	if trials := tuning.TrialsOf(t.Epochs, p.Own); len(trials) > 0 {
		t.Trial = trials[0]
		return t, true, nil
	}
	return t, !slices.ContainsFunc(marks, func(m mark) bool { return m.late }), nil
}

// stop ends a short job, even where ctx has ended.
func (p *prober) stop(ctx context.Context, id driver.JobID) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWait)
	defer cancel()
	if err := p.Jobs.Stop(ctx, id); err != nil && !errors.Is(err, driver.ErrNotFound) {
		return fmt.Errorf("short job %s could not be stopped, and runs on: %w", id, err)
	}
	return nil
}

const (
	poll    = 100 * time.Millisecond
	gone    = 2 * time.Minute // a scheduler that is away for longer ends the probes
	maxRead = 1 << 20         // bytes of output at a time
)

func newMatcher(p tuning.Progress) (*progress.Matcher, error) {
	if p.Pattern == "" {
		return nil, errors.New("its stanza has no progress pattern, by which epochs are known in its output")
	}
	re, err := regexp.Compile(p.Pattern)
	if err != nil {
		return nil, err
	}
	return progress.NewMatcher(re, p.Total)
}

// mark is a line that ends an epoch, and when it was read. Late: it may have been written
// long before.
type mark struct {
	report api.Report
	at     time.Time
	late   bool
}

// follow reads the output of a short job until the job has ended.
func (p *prober) follow(ctx context.Context, job driver.Job) (ended driver.Job, marks []mark, err error) {
	var rest []byte
	offset, away := int64(0), time.Time{}
	// What is there when the reading begins, or is read after a gap, was written at an
	// unknown time.
	late := true
	for {
		now, text, err := p.read(ctx, job.ID, offset)
		switch {
		case ctx.Err() != nil:
			return job, nil, ctx.Err()
		case err == nil:
			job, away = now, time.Time{}
			offset += int64(len(text))
			rest, marks = p.match(append(rest, text...), marks, late)
			if late = false; job.State.Ended() && len(text) == 0 {
				return job, marks, nil
			}
		case !errors.Is(err, driver.ErrTransient) && !errors.Is(err, driver.ErrUnknown), !away.IsZero() && time.Since(away) > gone:
			return job, nil, fmt.Errorf("short job %s: %w", job.ID, err)
		case away.IsZero():
			away, late = time.Now(), true
		}
		if err := driver.Pause(ctx, poll); err != nil {
			return job, nil, err
		}
	}
}

func (p *prober) read(ctx context.Context, id driver.JobID, offset int64) (driver.Job, []byte, error) {
	job, err := p.Jobs.Get(ctx, id)
	if err != nil {
		return job, nil, err
	}
	in, err := p.Jobs.Logs(ctx, id, offset)
	if err != nil {
		return job, nil, err
	}
	text, err := io.ReadAll(io.LimitReader(in, maxRead))
	return job, text, errors.Join(err, in.Close())
}

// match takes whole lines from the text and returns what is left.
func (p *prober) match(text []byte, marks []mark, late bool) ([]byte, []mark) {
	for {
		line, rest, ok := bytes.Cut(text, []byte("\n"))
		if !ok {
			return text, marks
		}
		text = rest
		if r, ok := p.matcher.Match(string(bytes.TrimRight(line, "\r"))); ok {
			marks = append(marks, mark{r, time.Now(), late})
		}
	}
}

// epochs are those between two marks: when the first one of a job began is unknown. What was
// read late is polluted.
func epochs(marks []mark, settings tuning.Settings, warmup int) []tuning.Epoch {
	var out []tuning.Epoch
	for i := 1; i < len(marks); i++ {
		from, to := marks[i-1], marks[i]
		if to.report.Epoch != from.report.Epoch+1 {
			continue
		}
		out = append(out, tuning.Epoch{
			Number: to.report.Epoch, Attempt: 1, Start: from.at, End: to.at, Loss: to.report.Loss, Quality: to.report.Quality,
			Settings: settings.Clone(), Warmup: i < warmup, Polluted: from.late || to.late || !to.at.After(from.at),
		})
	}
	return out
}
