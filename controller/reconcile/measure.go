package reconcile

import (
	"cmp"
	"context"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
)

// measure brings the record's epochs up to date: those of the present attempt
// and, since its last epochs may have come late, of the one before.
func (p *pass) measure(ctx context.Context) {
	switch {
	case !p.rec.Policy.Progress.IsSet():
		p.measured = tuning.ReasonNoProgress
		return
	case p.job.Attempt == 0:
		p.measured = tuning.ReasonWarmingUp
		return
	}
	for attempt := max(1, p.job.Attempt-1); attempt <= p.job.Attempt; attempt++ {
		settings := p.rec.Settings(attempt)
		m, err := p.stages.Measure(ctx, MeasureRequest{
			Job: p.job.ID, Attempt: attempt, Settings: settings, Policy: p.rec.Policy,
		})
		if err != nil {
			// Without the exporter nothing can be measured; the job is not to blame.
			p.cfg.Log.Debug("not measured", "job", p.job.ID, "attempt", attempt, "error", err)
			continue
		}
		p.merge(attempt, m)
		if attempt == p.job.Attempt {
			p.measured = m.Reason
		}
		if m.Reason == tuning.ReasonNone {
			if p.rec.Profiles == nil {
				p.rec.Profiles = map[string]tuning.Profile{}
			}
			p.rec.Profiles[settings.Key()] = m.Profile
		}
		p.rec.Peak = max(p.rec.Peak, m.Profile.PeakRSS)
	}
}

// tick is how long to wait before the job is measured again: the longer an
// attempt runs, the less a moment matters, and the more there is to read.
func (p *pass) tick() time.Duration {
	age := time.Duration(0)
	if n := len(p.job.Attempts); n > 0 {
		age = p.now.Sub(p.job.Attempts[n-1].Started)
	}
	return min(max(p.cfg.Tick, age/200), max(p.cfg.Tick, 30*time.Second))
}

// merge replaces what was known of the attempt's epochs. The window of an attempt
// only grows, unless the exporter restarted: then the longer story stays.
func (p *pass) merge(attempt int, m Measurement) {
	old := len(p.rec.Epochs)
	fresh := make(map[int]bool, len(m.Epochs))
	for _, e := range m.Epochs {
		fresh[e.Number] = true
	}
	keep := slices.DeleteFunc(slices.Clone(p.rec.Epochs), func(e tuning.Epoch) bool {
		return e.Attempt == attempt && fresh[e.Number]
	})
	p.rec.Epochs = append(keep, m.Epochs...)
	slices.SortFunc(p.rec.Epochs, func(a, b tuning.Epoch) int {
		return cmp.Or(cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Number, b.Number))
	})
	if m.Total > 0 && p.rec.Total != m.Total {
		p.rec.Total, p.dirty = m.Total, true
	}
	if len(p.rec.Epochs) != old {
		p.dirty = true
		p.restartCost(attempt)
	}
}

// restartCost measures what the change to this attempt cost: the time between
// the last epoch before and the first after, less one epoch.
func (p *pass) restartCost(attempt int) {
	if attempt < 2 || len(p.rec.RestartCosts) >= attempt-1 {
		return
	}
	var last, first *tuning.Epoch
	typical := 0.0
	for i, e := range p.rec.Epochs {
		switch {
		case e.Attempt < attempt:
			last = &p.rec.Epochs[i]
		case e.Attempt == attempt && first == nil:
			first = &p.rec.Epochs[i]
		case e.Attempt == attempt && typical == 0:
			typical = e.Seconds()
		}
	}
	if last == nil || first == nil || typical == 0 {
		return
	}
	gap := first.End.Sub(last.End) - time.Duration(typical*float64(time.Second))
	p.rec.RestartCosts = append(p.rec.RestartCosts, max(0, gap))
}

// classify asks once what the job resembles: under the settings of its first
// usable profile, since only equal settings can be compared.
func (p *pass) classify() {
	current := p.rec.Settings(p.job.Attempt)
	profile, ok := p.rec.Profiles[current.Key()]
	if !ok || p.rec.Class != nil || p.measured != tuning.ReasonNone {
		return
	}
	class := p.stages.Classify(profile)
	p.rec.Class, p.rec.ClassAt, p.dirty = &class, current, true
	p.rec.History = append(p.rec.History, Entry{
		At: p.now, Attempt: p.job.Attempt, Reason: class.Reason, Class: &class,
	})
}
