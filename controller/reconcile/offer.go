package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ErrNoOffer means that there is no such offer, or that none is made; the text says why.
var ErrNoOffer = errors.New("no head start")

// offered is how long an offer counts towards the site's caps until its job is seen. A job
// that is seen later still has it.
const offered = time.Minute

// Offer is the change that a job may start with, made before its user submits the job. It is
// durable before the user gets it, so that the job is recognised whenever it is seen. If the
// user never submits, it has no effect.
type Offer struct {
	ID       string          `json:"id"` // of the intent that the first attempt will have
	Job      driver.JobID    `json:"job"`
	Kind     tuning.JobKind  `json:"kind"`
	Change   driver.Change   `json:"change"`
	Decision tuning.Decision `json:"decision"`
	Decided  []Decided       `json:"decided,omitempty"` // with the state
	At       time.Time       `json:"at"`
}

func (o Offer) key() driver.JobID { return driver.JobID("offer " + o.ID) }

// Offers is the store of the offers. Put is durable when it returns.
type Offers interface {
	Put(ctx context.Context, o Offer) error
	Get(ctx context.Context, id string) (Offer, error) // ErrNoOffer
	Delete(ctx context.Context, id string) error
}

// Offer decides about a job before its submission, as about one that waits for its start.
// admit is the scheduler's dry run of the submission with the change. ErrNoOffer: the job
// should start as it is.
func (l *Loop) Offer(ctx context.Context, id string, job driver.Job, admit func(context.Context, driver.Change) error) (Offer, error) {
	none := func(r tuning.Reason) (Offer, error) { return Offer{}, fmt.Errorf("%w: %s", ErrNoOffer, r.Sentence()) }
	o := Offer{ID: id, Job: job.ID, At: l.cfg.Now()}
	if l.services.Offers == nil {
		return Offer{}, ErrNoOffer
	}
	reading := l.services.Read(ctx, job)
	if reading.Reason != tuning.ReasonNone {
		return none(reading.Reason)
	}
	rec := &Record{
		Identity: Identity{Job: o.key(), Name: job.Name, Owner: job.Owner, Kind: reading.Kind, Submitted: o.At},
		Phase:    Waiting,
		Request:  Request{Policy: reading.Policy, Own: reading.Own},
		Course:   Course{Total: reading.Policy.Progress.Total},
	}
	p := &reconciliation{Loop: l, now: o.At, job: job, rec: rec, measured: tuning.ReasonWarmingUp}
	if !rec.Policy.Progress.IsSet() {
		p.measured = tuning.ReasonNoProgress
	}
	defer func() { // of its own key nothing is asked again
		l.mu.Lock()
		delete(l.jobs, rec.Job)
		l.mu.Unlock()
	}()
	if err := p.draw(ctx); err != nil {
		return Offer{}, err
	}
	s, err := p.state(ctx)
	if err != nil {
		return Offer{}, err
	}
	d := p.record(ctx, s, l.stages.Choose(s))
	if d.Action != tuning.Move || spoils(s, d) {
		return none(d.Reason)
	}
	o.Kind, o.Decision, o.Decided = rec.Kind, d, rec.Decided
	in, err := NewIntent(id, job, rec.Policy, rec.Own, d.Settings, note(d))
	if err != nil {
		return Offer{}, err
	}
	if o.Change = in.Change; o.Change.Empty() {
		return none(d.Reason)
	}
	if err := admit(ctx, o.Change); err != nil {
		return Offer{}, fmt.Errorf("%w: %w", ErrNoOffer, err)
	}
	if r, rules := p.reserve(d); len(rules) > 0 {
		return Offer{}, fmt.Errorf("%w: %s: %s", ErrNoOffer, r.Sentence(), rules[0])
	} else if r != tuning.ReasonNone {
		return none(r)
	}
	l.caps.edit(rec.Job, func(x *counted) { x.until = p.now.Add(offered) })
	// The audit comes first: no offer without its audit entry.
	if err = p.audit(ctx, "offer", rec.Own, d, id); err == nil {
		err = l.services.Offers.Put(ctx, o)
	}
	if err != nil {
		l.caps.release(rec.Job)
		return Offer{}, fmt.Errorf("offer to %s: %w", job.ID, err)
	}
	return o, nil
}

// spoils reports whether the change would prevent tuning while the job runs. Only the memory
// of its kind is known.
func spoils(s tuning.State, d tuning.Decision) bool {
	diff := s.Own.Diff(d.Settings)
	memory := len(diff) == 1 && diff[0] == tuning.Memory
	tunable := s.Policy.Checkpoint != nil && s.Policy.Progress.IsSet() && slices.ContainsFunc(s.Policy.Knobs, func(k tuning.Knob) bool {
		return k.Name != tuning.Memory && !s.Policy.Learns(k.Name)
	})
	return memory && tunable && len(s.KindEffects) == 0
}

func (p *reconciliation) offer(ctx context.Context, intent string) (*Offer, error) {
	if intent == "" || p.services.Offers == nil || p.rec.Phase != Waiting {
		return nil, nil //nolint:nilnil // most jobs have none
	}
	o, err := p.services.Offers.Get(ctx, intent)
	if errors.Is(err, ErrNoOffer) || err == nil && (o.Job != p.job.ID || o.Kind != p.rec.Kind) {
		return nil, nil //nolint:nilnil // another job's
	}
	if err != nil {
		return nil, fmt.Errorf("what %s was offered: %w", p.job.ID, err)
	}
	return &o, nil
}

func (p *reconciliation) begun(ctx context.Context) error {
	intent := p.job.Intent
	if n := len(p.job.Attempts); n > 0 {
		intent = p.job.Attempts[n-1].Intent
	}
	o, err := p.offer(ctx, intent)
	if o == nil || err != nil {
		return err
	}
	return p.accept(ctx, *o)
}

// accept writes what the record of a waiting job would have: a recalled setting whose change
// was made.
func (p *reconciliation) accept(ctx context.Context, o Offer) error {
	p.caps.take(o.key(), p.rec, o.Decision)
	// The submission made the change; the audit has it too.
	if err := p.audit(ctx, string(o.Decision.Action), p.rec.Own, o.Decision, o.ID); err != nil {
		return err
	}
	if len(p.rec.Decided) == 0 {
		p.rec.Decided = o.Decided
	}
	p.rec.Move = &Intent{
		Driver:   driver.Intent{ID: o.ID, Job: p.job.ID, Fingerprint: p.job.Fingerprint, Change: o.Change},
		Decision: o.Decision, Made: o.At, Tried: true, Step: driver.StepStarted,
	}
	p.rec.Control = false // it was drawn on another day
	d := o.Decision
	p.to(Changing, KnownKind, Entry{Reason: d.Reason, Decision: &d})
	p.started(driver.Step{Kind: driver.StepStarted, Attempt: p.job.Attempt})
	if err := p.store(ctx); err != nil {
		return err
	}
	// The record has it. An offer that remains is pruned with the old ones.
	if err := p.services.Offers.Delete(ctx, o.ID); err != nil {
		p.cfg.Log.Warn("an accepted offer was not deleted", "job", p.job.ID, "error", err)
	}
	return nil
}
