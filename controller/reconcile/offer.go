package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"pitchpipe/controller/resubmit"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// ErrNoOffer means that an offer is not known, or that none is made; the text says why.
var ErrNoOffer = errors.New("no head start")

// offered is for how long an offer counts against what the site allows before its job
// was seen. A job that is seen later still has it.
const offered = time.Minute

// Offer is what a job that is about to be submitted by its user may begin with. It is
// durable before the user hears of it, so that its job is known for what it is whenever
// it is seen; where the user never submits, nothing comes of it.
type Offer struct {
	ID       string          `json:"id"` // of the intent that the job's first attempt then has
	Job      driver.JobID    `json:"job"`
	Kind     tuning.JobKind  `json:"kind"`
	Change   driver.Change   `json:"change"`
	Decision tuning.Decision `json:"decision"`
	Decided  []Decided       `json:"decided,omitempty"` // with what it was made of
	At       time.Time       `json:"at"`
}

// key is what an offer is counted by before its job is there.
func (o Offer) key() driver.JobID { return driver.JobID("offer " + o.ID) }

// Offers is where offers are kept. Put is durable when it returns.
type Offers interface {
	Put(ctx context.Context, o Offer) error
	Get(ctx context.Context, id string) (Offer, error) // ErrNoOffer
	Delete(ctx context.Context, id string) error
}

// Offer decides about a job that does not exist yet as about one that waits for its
// start. Admit is the scheduler's dry run of its submission with the change. The error is
// ErrNoOffer where the job is to begin as it is.
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
		Identity: Identity{Job: o.key(), Name: job.Name, Owner: job.Owner, Kind: reading.Kind},
		Phase:    Waiting,
		Request:  Request{Policy: reading.Policy, Own: reading.Own},
		Course:   Course{Total: reading.Policy.Progress.Total},
	}
	p := &reconciliation{Loop: l, now: o.At, job: job, rec: rec, measured: tuning.ReasonWarmingUp}
	if !rec.Policy.Progress.IsSet() {
		p.measured = tuning.ReasonNoProgress
	}
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
	in, err := resubmit.Intent(id, job, rec.Policy, rec.Own, d.Settings, note(d))
	if err != nil {
		return Offer{}, err
	}
	if o.Change = in.Change; o.Change.Empty() {
		return none(d.Reason)
	}
	if err := admit(ctx, o.Change); err != nil {
		return Offer{}, fmt.Errorf("%w: %w", ErrNoOffer, err)
	}
	l.caps.lapse(p.now)
	if r := p.claim(d); r != tuning.ReasonNone {
		return none(r)
	}
	site := l.services.Site(job)
	if key := l.caps.admit(p.now, rec, d.Action, site); key != "" {
		l.caps.release(rec.Job)
		return Offer{}, fmt.Errorf("%w: %s: %s", ErrNoOffer, tuning.ReasonSiteCap.Sentence(), site.Rule(key))
	}
	l.caps.promise(rec.Job, p.now.Add(offered))
	// As with an intent: what cannot be audited is not even wanted.
	err = l.services.Audit(ctx, Audit{
		At: p.now, Actor: "tuner", Job: string(job.ID), Action: "offer", Before: rec.Own, After: d.Settings, Reason: d.Reason, Intent: id,
	})
	if err == nil {
		err = l.services.Offers.Put(ctx, o)
	}
	if err != nil {
		l.caps.release(rec.Job)
		return Offer{}, fmt.Errorf("offer to %s: %w", job.ID, err)
	}
	return o, nil
}

// spoils reports whether to begin with it would keep a job from being tuned as it runs: of
// its kind nothing is known yet but its memory, and what its epochs under its owner's
// own settings would teach is worth more than the memory.
func spoils(s tuning.State, d tuning.Decision) bool {
	diff := s.Own.Diff(d.Settings)
	memory := len(diff) == 1 && diff[0] == tuning.Memory
	tunable := s.Policy.Checkpoint != nil && s.Policy.Progress.IsSet() && slices.ContainsFunc(s.Policy.Knobs, func(k tuning.Knob) bool {
		return k.Name != tuning.Memory && !s.Policy.Learns(k.Name)
	})
	return memory && tunable && len(s.KindEffects) == 0
}

// offer is what the job of an attempt was offered before it was submitted; nil: it was
// not. What cannot be read is asked for again.
func (p *reconciliation) offer(ctx context.Context, intent string) (*Offer, error) {
	if intent == "" || p.services.Offers == nil || p.rec.Phase != Waiting {
		return nil, nil //nolint:nilnil // most jobs were offered nothing
	}
	o, err := p.services.Offers.Get(ctx, intent)
	if errors.Is(err, ErrNoOffer) || err == nil && (o.Job != p.job.ID || o.Kind != p.rec.Kind) {
		return nil, nil //nolint:nilnil // it is none of ours
	}
	if err != nil {
		return nil, fmt.Errorf("what %s was offered: %w", p.job.ID, err)
	}
	return &o, nil
}

// begun tells a job that began with what it was offered, or is about to, from one that
// begins as its owner wrote it, whether it still runs or not.
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

// accept writes down of a job that was submitted with an offer what would have been
// written down had it waited: it is recalled, and nothing is left to be done to it.
func (p *reconciliation) accept(ctx context.Context, o Offer) error {
	p.caps.take(o.key(), p.rec, o.Decision)
	// The effect was its owner's submission; it is in the audit all the same.
	if err := p.services.Audit(ctx, Audit{
		At: p.now, Actor: "tuner", Job: string(p.job.ID), Action: string(o.Decision.Action),
		Before: p.rec.Own, After: o.Decision.Settings, Reason: o.Decision.Reason, Intent: o.ID,
	}); err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if len(p.rec.Decided) == 0 {
		p.rec.Decided = o.Decided
	}
	p.rec.Move = &Intent{
		Driver:   driver.Intent{ID: o.ID, Job: p.job.ID, Fingerprint: p.job.Fingerprint, Change: o.Change},
		Decision: o.Decision, Made: o.At, Tried: true, Step: driver.StepStarted,
	}
	d := o.Decision
	if err := p.to(Changing, KnownKind, Entry{Reason: d.Reason, Decision: &d}); err != nil {
		return err
	}
	if err := p.started(driver.Step{Kind: driver.StepStarted, Attempt: p.job.Attempt}); err != nil {
		return err
	}
	if err := p.store(ctx); err != nil {
		return err
	}
	// It is in the record. An offer that stays behind is forgotten with the old ones.
	if err := p.services.Offers.Delete(ctx, o.ID); err != nil {
		p.cfg.Log.Warn("an offer that was taken is still there", "job", p.job.ID, "error", err)
	}
	return nil
}
