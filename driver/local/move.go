package local

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/move"
)

// Advance takes at most one step towards the intent. The steps of a running job
// are Checkpointing until it left, Stopped, Changed, Started; those of a pending
// one Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	return d.moves.Advance(ctx, d, in)
}

// Look implements move.Scheduler.
func (d *Driver) Look(ctx context.Context, id driver.JobID, intent string) (move.Job, func(), error) {
	h := d.hear(id, intent)
	d.mu.Lock()
	r, err := d.find(id)
	if err == nil {
		d.touched[id] = time.Now()
		if r.Job.State == driver.Running {
			err = d.harvest(ctx, r)
			r = d.jobs[id]
		}
	}
	if err != nil {
		d.mu.Unlock()
		return nil, nil, err
	}
	return &mover{d: d, r: r.clone(), h: h}, d.mu.Unlock, nil
}

// mover is one job under the driver's lock, with a copy of its record. A job that left keeps
// its room until Hold has passed, and what is planned is what will be.
type mover struct {
	move.Defaults
	d *Driver
	r *record
	h heard
}

var _ move.Job = (*mover)(nil)

func (m *mover) Record() *move.Record { return &m.r.Record }

func (m *mover) Attempt() int { return m.r.Job.Attempt }

func (m *mover) Save(context.Context) error { return m.d.commit(m.r.clone(), "") }

func (m *mover) View(in driver.Intent) move.View {
	r := m.r
	v := move.View{Job: r.Job}
	switch {
	case r.Job.State.Ended():
		v.End = move.End{Kind: driver.StepFinished, Why: string(r.Job.State)}
	case r.Job.State != driver.Running:
		v.At = move.Waits
	case r.Moving != nil && r.Moving.Phase == move.Ending && m.d.stops(r):
		v.At = move.Leaving
	}
	switch {
	case r.Job.State == driver.Pending && r.Next.Intent == in.ID:
		v.Applied = "the next attempt is queued"
	case slices.ContainsFunc(r.Job.Attempts, func(a driver.Attempt) bool { return a.Intent == in.ID }):
		v.Applied = "the intent was applied"
	}
	v.Changed = r.Next.Intent == in.ID
	return v
}

func (m *mover) Judge(_ context.Context, in driver.Intent) error { return m.d.judge(m.r, in) }

func (m *mover) Begin(context.Context) (move.End, error) {
	switch {
	case m.r.Moving.Queued:
	case m.r.Cancel:
		return move.End{Kind: driver.StepRunning, Why: "the job is being cancelled"}, nil
	case m.r.Moving.Intent.Discard:
	case m.h.err != nil:
		return move.End{}, m.h.err
	case m.h.size < 0: // it was not running when its output was looked at
		return move.End{Kind: driver.StepRunning, Why: "the attempt has just begun"}, nil
	}
	m.r.Offset = m.h.size
	return move.End{}, nil
}

// Ask implements move.Job: the supervisor sends the signal, once for each intent.
func (m *mover) Ask(context.Context) error {
	path, in := filepath.Join(m.d.store.launch(m.r), supervise.SignalFile), m.r.Moving.Intent
	sig := supervise.Signal{ID: in.ID, Signal: in.Checkpoint.SignalName(), At: time.Now()}
	if err := order(path, sig, func(have supervise.Signal) bool { return have.ID == in.ID }); err != nil {
		return fmt.Errorf("asking it to save: %w: %w", driver.ErrTransient, err)
	}
	return nil
}

// order writes what a supervisor is to do, unless that is there.
func order[T any](path string, want T, is func(have T) bool) error {
	var have T
	if err := durable.ReadJSON(path, &have); err == nil && is(have) {
		return nil
	}
	return durable.WriteJSON(path, want, 0o600)
}

func (m *mover) Saved(context.Context) (bool, error) {
	return m.h.saved && m.h.intent == m.r.Moving.Intent.ID, m.h.err
}

func (m *mover) Stop(context.Context) error {
	if m.r.Moving.Intent.Discard {
		return m.d.requestStop(m.r, supervise.StopDiscarded)
	}
	return m.d.requestStop(m.r, supervise.StopSaved)
}

// Plan implements move.Job. What is planned is what will be.
func (m *mover) Plan(context.Context) (move.End, error) {
	in := m.r.Moving.Intent
	m.r.Next = next{Change: in.Change.Clone(), Cause: driver.CauseIntent, Intent: in.ID, Note: oneLine(in.Note)}
	return move.End{}, nil
}

// Start implements move.Job. The record is saved when the intent is closed.
func (m *mover) Start(context.Context) (move.End, error) {
	if m.r.Job.State == driver.Stopped {
		m.r.queue("")
	}
	m.r.Job.NotBefore = time.Time{}
	m.d.nudge()
	return move.End{}, nil
}

func (m *mover) Over(_ context.Context, end move.End) error {
	if status := m.r.Moving.Intent.Checkpoint; end.Kind == driver.StepAbandoned && status.Exit != 0 {
		m.r.SavedExits = append(m.r.SavedExits, status.Exit) // so is a late checkpoint known
	}
	return nil
}

// overdue ends an intent that is not advanced any more, or has its attempt ended that was
// to be ended when a crash came.
func (d *Driver) overdue(ctx context.Context, r *record, now time.Time) error {
	m := &mover{d: d, r: r.clone()}
	if r.Moving.Phase == move.Ending && r.Job.State == driver.Running {
		_, err := new(move.Machine).Proceed(ctx, m)
		return err
	}
	kind := move.Overdue(r.Moving, r.Job.State == driver.Stopped, d.patience(r), now)
	if kind == "" {
		return nil
	}
	const why = "the tuner did not come back"
	if err := m.Over(ctx, move.End{Kind: kind, Why: why}); err != nil {
		return err
	}
	m.r.Close(kind, why)
	if r.Job.State == driver.Stopped {
		m.r.requeue(m.r.attempt().Change, driver.CauseLate, why+"; running on under the settings before")
	}
	return d.commit(m.r, "hold-ended")
}

// Check is the dry run of Advance.
func (d *Driver) Check(_ context.Context, in driver.Intent) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(in.Job)
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if r.Job.State.Ended() {
		return fmt.Errorf("check: job %s has ended: %w", in.Job, driver.ErrConflict)
	}
	if err := d.judge(r, in); err != nil {
		return fmt.Errorf("check: job %s: %w", in.Job, err)
	}
	return nil
}

// judge refuses an intent that this machine or this job cannot follow.
func (d *Driver) judge(r *record, in driver.Intent) error {
	if err := d.checkChange(r, in.Change); err != nil {
		return err
	}
	if r.Job.State == driver.Pending {
		return nil
	}
	if err := move.Judge(in, !r.File.NoRequeue); err != nil {
		return err
	}
	return d.grow(r, in.Change)
}

// stops reports whether the supervisor was asked to end the attempt.
func (d *Driver) stops(r *record) bool {
	return durable.ReadJSON(filepath.Join(d.store.launch(r), supervise.StopFile), &supervise.Stop{}) == nil
}
