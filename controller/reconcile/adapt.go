package reconcile

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// adapt decides after each epoch about the actions that the job offers. What it is to have taken is
// durable before it is handed over, as counts, so that handing it over again changes nothing.
func (p *reconciliation) adapt(ctx context.Context) error {
	if len(p.rec.Policy.Actions) == 0 || p.job.State != driver.Running || p.rec.Phase == Changing || p.rec.Phase == Ignored {
		return nil
	}
	if p.grew {
		if err := p.askActions(ctx); err != nil {
			return err
		}
	}
	if !p.rec.Handing {
		return nil
	}
	settings := map[string]string{}
	for name, n := range tuning.Counts(p.rec.Taken) {
		settings[name] = n.String()
	}
	err := p.services.Adapt(ctx, p.rec.Job, settings)
	switch {
	case errors.Is(err, driver.ErrConflict), errors.Is(err, driver.ErrNotFound): // it has just ended
		return nil
	case errors.Is(err, driver.ErrUnsupported):
		p.rec.Taken, p.rec.Unadapted = p.rec.Taken[:len(p.rec.Taken)-1], tuning.ReasonUnsupported
		p.add(Entry{Reason: tuning.ReasonUnsupported, Detail: err.Error(), Attempt: p.job.Attempt})
	case err != nil:
		return fmt.Errorf("hand an action to %s: %w", p.rec.Job, err)
	}
	set(p, &p.rec.Handing, false)
	return nil
}

func (p *reconciliation) askActions(ctx context.Context) error {
	s, err := p.state(ctx)
	if err != nil {
		return err
	}
	s.Adaptation = &tuning.Adaptation{Taken: p.rec.Taken, Mute: p.services.Adapt == nil || p.rec.Unadapted == tuning.ReasonUnsupported}
	past, err := p.past(ctx)
	if err != nil {
		return err
	}
	for _, run := range past {
		if run.Adapted != nil {
			s.Adaptation.Past = append(s.Adaptation.Past, *run.Adapted)
		}
	}
	others, err := p.cfg.Records.All(ctx)
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	for _, r := range others {
		if r.Job != p.rec.Job && r.Kind == p.rec.Kind && !r.Phase.Over() && len(r.Taken) > 0 {
			s.Adaptation.Past = append(s.Adaptation.Past, tuning.Adapted{Taken: r.Taken})
		}
	}
	d := p.stages.Choose(s)
	if d.Action == tuning.Hold && d.Reason == p.rec.Unadapted {
		return nil
	}
	set(p, &p.rec.Unadapted, d.Reason)
	d = p.record(ctx, s, d)
	if d.Action == tuning.Adapt {
		if err := p.audit(ctx, string(d.Action), tuning.Counts(p.rec.Taken), d, fmt.Sprintf("%s/action/%d", p.job.ID, len(p.rec.Taken)+1)); err != nil {
			return err
		}
		for name, n := range d.Settings {
			if n.Int() > tuning.Times(p.rec.Taken, name) {
				p.rec.Taken, p.rec.Handing = append(p.rec.Taken, tuning.Taken{Name: name, Left: float64(s.EpochsTotal - s.EpochsDone - 1)}), true
			}
		}
	}
	p.add(Entry{Reason: d.Reason, Decision: &d, Attempt: p.job.Attempt})
	return p.store(ctx)
}

// adapted is what the end of a job teaches about its actions: nothing where it may have ended
// before it took the last one.
func (p *reconciliation) adapted() *tuning.Adapted {
	const last = 3
	if len(p.rec.Policy.Actions) == 0 {
		return nil
	}
	out := &tuning.Adapted{Taken: p.rec.Taken}
	var ends []float64
	for _, e := range p.rec.Epochs {
		if e.Quality != nil && e.Number > p.rec.Total-last {
			ends = append(ends, *e.Quality)
		}
	}
	if p.job.State == driver.Succeeded && !p.rec.Handing && p.rec.Total > 0 && p.rec.Done() == p.rec.Total && len(ends) > 0 {
		out.Quality = new(stat.Mean(ends, nil))
	}
	return out
}
