package slurm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/parse"
	"pitchpipe/driver/slurm/slurmctl"
)

// Advance takes at most one step towards the intent. The steps of a running job
// are Checkpointing until it left, Stopped, Changed, Started; those of a waiting
// one Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	return d.moves.Advance(ctx, d, in)
}

// Look implements move.Scheduler.
func (d *Driver) Look(ctx context.Context, id driver.JobID, _ string) (move.Job, func(), error) {
	release := d.hold(id)
	m, err := d.look(ctx, id)
	if err != nil {
		release()
		return nil, nil, err
	}
	return m, release, nil
}

func (d *Driver) look(ctx context.Context, id driver.JobID) (*mover, error) {
	j, r, err := d.opened(ctx, id)
	if errors.Is(err, driver.ErrNotFound) && parse.Named(string(id)) {
		job, err := d.past(ctx, id, err)
		if !job.State.Ended() {
			job.State = driver.Lost
		}
		return &mover{d: d, r: &Record{}, past: &job}, err
	}
	if err == nil {
		_, err = d.script(ctx, j, r)
	}
	return &mover{d: d, j: j, r: r}, err
}

// mover is a job that was read in this call, and its record.
type mover struct {
	d    *Driver
	j    parse.Job
	r    *Record
	past *driver.Job // what is known of a job that slurmctld has forgotten
}

var _ move.Job = (*mover)(nil)

func (m *mover) Record() *move.Record { return &m.r.Record }

func (m *mover) Attempt() int {
	if m.past != nil {
		return m.past.Attempt
	}
	return m.d.sketch(m.j, m.r).Attempt
}

func (m *mover) Save(context.Context) error { return m.d.write(m.r, "") }

func (m *mover) View(in driver.Intent) move.View {
	var v move.View
	if m.past != nil {
		v.Job = *m.past
	} else {
		v.Job = m.d.sketch(m.j, m.r)
		has, want := rooms(m.j, m.r, in.Change)
		v.Grows = want.Beyond(has)
	}
	if n := len(v.Job.Attempts); n > 0 && v.Job.Attempts[n-1].Intent == in.ID {
		v.Applied = "the attempt has the settings of the intent"
	}
	if m.r.Next != nil && m.r.Next.Intent == in.ID && !v.Job.State.Ended() {
		v.Applied = "the next attempt is queued"
	}
	if parse.Waiting(m.j.State) {
		v.At = move.Waits
	}
	if m.r.Moving == nil || m.r.Moving.Intent.ID != in.ID {
		return v
	}
	from, phase := m.r.From, m.r.Moving.Phase
	superseded := func(why string) move.View {
		v.End = move.End{Kind: driver.StepSuperseded, Why: why}
		return v
	}
	switch {
	case parse.Ended(m.j.State) && !(from.Memory && m.j.Restarts == from.Restarts):
		v.End = move.End{Kind: driver.StepFinished, Why: "the job has ended"}
	case m.j.Restarts > from.Restarts+1:
		return superseded("the job was put back into the queue by another")
	case m.began() && m.applied():
		v.End = move.End{Kind: driver.StepStarted, Why: "runs"}
	case m.began():
		return superseded("the next attempt began before it was changed")
	case phase == move.Stopped || phase == move.Changed:
		if why := m.ownersWord(); why != "" && v.At == move.Waits {
			return superseded(why)
		}
		v.Changed = v.At == move.Waits && same(m.want(), slurmctl.SizeOf(m.j))
	case m.j.Restarts > from.Restarts && m.heldByTheSite():
		return superseded(fmt.Sprintf("the job left with status %d, for which the cluster holds it", m.j.Exit.Code()))
	case v.At == move.Waits && m.j.Restarts > from.Restarts:
	case leaving(m.j, time.Now()), m.j.State == "COMPLETING":
		v.At = move.Leaving
	case v.At == move.Waits:
		return superseded("slurmctld took the attempt back") // the restart was not counted: it lost what it knew
	case phase == move.Ending && !m.j.Requeue:
		return superseded("the job's owner forbids restarts")
	}
	return v
}

// began reports whether the attempt after the one that the intent was made for runs.
func (m *mover) began() bool {
	return parse.Running(m.j.State) && begun(m.j, m.r, time.Now()) > m.r.From.Restarts+1
}

// applied reports whether the attempt that runs has the settings of the intent in progress.
func (m *mover) applied() bool {
	a := m.r.latest()
	return a.Intent == m.r.Moving.Intent.ID || m.r.From.Memory && a.Cause == driver.CauseMemory
}

func (m *mover) Begin(ctx context.Context) (move.End, error) {
	in := m.r.Moving.Intent
	m.r.From = From{Restarts: m.j.Restarts, Before: slurmctl.SizeOf(m.j)}
	m.r.Node = ""
	if m.r.Moving.Queued {
		m.r.From.Restarts--
		return move.End{}, nil
	}
	m.r.Node = m.j.Node
	switch m.j.State {
	case "COMPLETING":
		return move.End{Kind: driver.StepRunning, Why: "the attempt is just ending"}, nil
	case "SUSPENDED": // it would not hear the signal
		return move.End{Kind: driver.StepRunning, Why: "the attempt is suspended"}, nil
	}
	if n := len(m.r.Attempts); n > 0 && m.r.Attempts[n-1].Change.Cores == 0 { // as it runs it may say less
		m.r.From.Before.Cores = max(m.r.From.Before.Cores, m.r.Own.Cores)
	}
	if in.Discard {
		return move.End{}, nil
	}
	size, err := m.d.outputs.Size(m.j.StdOut, int(m.j.UID))
	if err != nil {
		return move.End{}, err
	}
	m.r.From.Offset = size
	if in.Checkpoint.Done != "" && m.d.cfg.Everyone {
		saves, err := m.d.cfg.Saves(ctx, m.j.Node, driver.JobID(m.j.ID), m.j.Restarts+1)
		if err != nil {
			return move.End{}, fmt.Errorf("how often it saved before: %w: %w", driver.ErrTransient, err)
		}
		m.r.From.Saves, m.r.From.Since = saves.Count, saves.Now
	}
	return move.End{}, nil
}

// Ask implements move.Job. A crash between the signal and its record sends it again, so a
// job's handler must tolerate a second one.
func (m *mover) Ask(ctx context.Context) error {
	err := m.d.cfg.Actor.Signal(ctx, string(m.r.Job), m.r.Moving.Intent.Checkpoint.SignalName())
	if errors.Is(err, driver.ErrNotFound) {
		return nil // so says scancel of a job that has just ended, as the next look shows
	}
	return err
}

// Over implements move.Job. What is made to wait goes on. What its owner holds stays held,
// and does not wait for us once he lets it go.
func (m *mover) Over(ctx context.Context, end move.End) error {
	waits := m.r.Moving.Phase == move.Stopped || m.r.Moving.Phase == move.Changed
	switch {
	case end.Kind != driver.StepSuperseded:
	case m.began():
		m.heed()
	case waits && parse.Waiting(m.j.State) && m.j.Restarts == m.r.From.Restarts+1:
		if m.ownersWord() != "" && !unchanged(m.r.From.Before, slurmctl.SizeOf(m.j)) {
			m.r.Own = slurmctl.SizeOf(m.j)
		}
		if err := m.letGo(ctx); err != nil && !errors.Is(err, driver.ErrDenied) {
			return err
		}
	}
	m.late()
	if end.Kind == driver.StepStarted {
		return nil
	}
	m.r.Next = nil
	if end.Kind == driver.StepSuperseded {
		return m.keepSettings()
	}
	return nil
}

// want is the size that the intent gives the job.
func (m *mover) want() Size { return target(m.r.Own, m.r.Moving.Intent.Change) }

// ownersWord says what the owner did to the waiting job meanwhile.
func (m *mover) ownersWord() string {
	have := slurmctl.SizeOf(m.j)
	switch {
	case !unchanged(m.r.From.Before, have) && !same(m.want(), have):
		return fmt.Sprintf("the job's owner changed it from %v to %v", m.r.From.Before, have)
	case m.j.Held && !m.r.Moving.Queued && (m.r.Held || m.j.State != "SPECIAL_EXIT"):
		return "the job's owner holds it"
	case !m.j.Requeue && !m.r.Moving.Queued:
		return "the job's owner forbids restarts"
	}
	return ""
}

// late notes that the job was asked to save: whenever it is seen to have left for that
// reason it is ours to let go, even when slurmctld forgot that it was. One that left was
// asked, though a crash may have come between the signal and its record.
func (m *mover) late() {
	moving := m.r.Moving
	asked := moving.Sent || !moving.Queued && (moving.Phase != move.Asking || m.j.Restarts > m.r.From.Restarts)
	if cp := moving.Intent.Checkpoint; asked && cp != nil && cp.Exit != 0 {
		m.r.Late = &Late{Restarts: m.r.From.Restarts + 1, Exit: cp.Exit}
	}
}
