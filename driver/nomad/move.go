package nomad

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// Advance takes at most one step towards the intent: of a running job Checkpointing
// until it saved, Changed, Started; of a waiting one, or where the intent discards,
// Changed and Started.
func (d *Driver) Advance(ctx context.Context, in driver.Intent) (driver.Step, error) {
	return d.moves.Advance(ctx, d, in)
}

func markOf(in driver.Intent) spec.Mark {
	return spec.Mark{Intent: in.ID, Cause: driver.CauseIntent, Change: in.Change.Clone()}
}

// Look implements move.Scheduler.
func (d *Driver) Look(ctx context.Context, id driver.JobID, intent string) (move.Job, func(), error) {
	held := d.hold(id)
	release := func() {
		d.keep(id, func(c *cached) { c.snapshot = nil })
		held()
	}
	f, job, err := d.get(ctx, id)
	if errors.Is(err, driver.ErrNotFound) {
		if r, failed := d.load(ctx, id); failed == nil && r != nil && r.Last != nil {
			return &mover{d: d, r: r, job: *r.Last}, release, nil
		}
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	m := newMover(d, f, job)
	_, ended := m.r.Closed[intent]
	if why := spec.ObservedOnly(f.own); why != "" && !ended && !job.State.Ended() && (m.r.Moving == nil || m.r.Moving.Intent.ID != intent) {
		release()
		return nil, nil, fmt.Errorf("%s: %w", why, driver.ErrUnsupported)
	}
	return m, release, nil
}

// mover is one job that was read in this call. Its change ends the attempt, and a job that
// left is changed at once.
type mover struct {
	move.Defaults
	d   *Driver
	f   *facts // nil: Nomad has forgotten the job
	r   *record
	job driver.Job

	target *api.Job // that is to be registered
	write  placed   // that is to be made
}

var _ move.Job = (*mover)(nil)

func newMover(d *Driver, f *facts, job driver.Job) *mover {
	m := &mover{d: d, f: f, r: cmp.Or(f.rec, &record{Job: f.id}), job: job}
	moving := m.r.Moving
	if moving == nil {
		return m
	}
	if m.registered() {
		moving.Phase = move.Changed
	}
	if a := f.alloc(m.r.From.Alloc); a != nil && !moving.Queued {
		_, left := view.Left(a, f.task, m.r.From.Since)
		moving.Sent = moving.Sent || left || view.Signaled(a, f.task, m.r.From.Since)
	}
	return m
}

// registered reports whether the present version is that of the intent in progress.
func (m *mover) registered() bool {
	return m.r.Moving != nil && m.f != nil && m.f.mark != nil && m.f.mark.Intent == m.r.Moving.Intent.ID
}

func (m *mover) Record() *move.Record { return &m.r.Record }

func (m *mover) Attempt() int { return m.job.Attempt }

func (m *mover) Save(ctx context.Context) error { return m.d.save(ctx, m.r) }

func (m *mover) View(in driver.Intent) move.View {
	v := move.View{Job: m.job, Direct: true}
	if m.f == nil {
		v.End = move.End{Kind: driver.StepFinished, Why: string(m.job.State)}
		return v
	}
	if m.f.queued() {
		v.At = move.Waits
	}
	if m.r.Moving == nil || m.r.Moving.Intent.ID != in.ID {
		v.Grows = m.grows(in)
		if mark := m.f.mark; mark != nil && mark.Intent != "" && m.r.Closed[mark.Intent] == driver.StepStarted && in.Attempt > 0 && m.pending() {
			v.End = move.End{Kind: driver.StepSuperseded, Why: "the next attempt is queued with intent " + mark.Intent}
		}
		return v
	}
	if m.registered() {
		v.Changed, v.Final = true, true
		return v
	}
	if v.End.Kind, v.End.Why = m.past(); v.End.Kind != "" {
		return v
	}
	switch {
	case m.r.inPlace():
		v.Changed, v.Final = true, true
	case !m.r.Moving.Queued:
		v.At, v.End = m.left()
	case v.At != move.Waits && m.job.Attempt != in.Attempt:
		v.End = move.End{Kind: driver.StepSuperseded, Why: "it began before it was changed"}
	}
	return v
}

// left is where the run is that the intent was made for, and how the intent has ended if
// that run left otherwise than it was asked to.
func (m *mover) left() (move.At, move.End) {
	f, from := m.f, m.r.From
	a := f.alloc(from.Alloc)
	if a == nil || f.latest().ID != from.Alloc {
		return move.Runs, move.End{Kind: driver.StepSuperseded, Why: "Nomad has replaced its allocation"}
	}
	code, left := view.Left(a, f.task, from.Since)
	if !left {
		return move.Runs, move.End{}
	}
	cp, t := m.r.Moving.Intent.Checkpoint, view.TaskOf(a, f.task)
	switch {
	case cp.Exit != 0 && code == cp.Exit && t.Exit == code && (t.Waits || view.Over(a)):
		return move.Waits, move.End{}
	case view.Restarted(a, f.task, from.Since):
		return move.Runs, move.End{Kind: driver.StepSuperseded, Why: "its owner or Nomad restarted it"}
	case t.Exit < 0:
		return move.Runs, move.End{Kind: driver.StepAbandoned, Why: fmt.Sprintf("it left with status %d and was started again by its restart policy before it was changed", code)}
	case t.Waits:
		return move.Runs, move.End{Kind: driver.StepAbandoned, Why: fmt.Sprintf("it left with status %d, and its restart policy starts it again", code)}
	case view.Over(a) && f.dead():
		return move.Runs, move.End{Kind: driver.StepFinished, Why: fmt.Sprintf("it left with status %d", code)}
	}
	return move.Leaving, move.End{}
}

// pending reports whether the registered version has not begun.
func (m *mover) pending() bool {
	return !slices.ContainsFunc(m.f.rec.Attempts, func(k view.Known) bool { return k.Version == m.f.version() })
}

func (m *mover) Judge(ctx context.Context, in driver.Intent) error { return m.d.judge(ctx, m.f, in) }

func (m *mover) Begin(ctx context.Context) (move.End, error) {
	f, moving := m.f, m.r.Moving
	a := f.latest()
	if !moving.Queued && (view.TaskOf(a, f.task).Began.IsZero() || a.ClientStatus != "running") {
		return move.End{Kind: driver.StepRunning, Why: "its allocation is about to begin"}, nil
	}
	m.r.From = from{Before: f.version()}
	from := &m.r.From
	if a != nil {
		from.Alloc, from.Newest = a.ID, a.CreateIndex
	}
	if m.grows(moving.Intent) {
		from.Grows = a.NodeID
	}
	m.open(ctx)
	if moving.Queued {
		return move.End{}, nil
	}
	var err error
	if !moving.Intent.Discard { // a template takes its time, and ends what runs as politely as Nomad does
		if from.InPlace, err = m.mayRestart(ctx, moving.Intent); err != nil {
			return move.End{}, err
		}
	}
	if from.Node, err = m.d.c.registered(ctx, a.NodeID); err != nil {
		return move.End{}, err
	}
	from.Since = view.TaskOf(a, f.task).Last
	if moving.Intent.Checkpoint.Done != "" || moving.Intent.Discard { // its client answers
		if from.Offset, err = m.d.outputSize(ctx, f.at, a.ID, f.task, stdout); err != nil {
			return move.End{}, err
		}
	}
	if moving.Intent.Discard && time.Since(time.Unix(from.Node, 0)) < settling {
		from.Back = time.Now().UTC()
	}
	return move.End{}, nil
}

// grows reports whether a job that runs is to have more than it has.
func (m *mover) grows(in driver.Intent) bool {
	job, err := m.d.target(m.f, markOf(in))
	return err == nil && !m.f.queued() && larger(m.f.job, job)
}

// open makes the record of a job without one: what its owner wrote is kept before the
// first change.
func (m *mover) open(ctx context.Context) {
	m.f.rec = m.r
	m.f.open()
	if m.r.Submission == nil {
		m.r.Submission = m.f.theirs(m.d.c.submission(ctx, m.f.at, m.f.version()))
	}
}

// Ask implements move.Job. A crash between the signal and its record would send it again,
// were it not for the events that show it.
func (m *mover) Ask(ctx context.Context) error {
	err := m.d.c.task(ctx, m.f.at, m.r.From.Alloc, "signal", map[string]string{"Signal": m.r.Moving.Intent.Checkpoint.SignalName(), "Task": m.f.task})
	if err != nil && (errors.Is(err, driver.ErrNotFound) || strings.Contains(err.Error(), "not running")) {
		return nil // it has just ended: the next look shows how
	}
	if err != nil && strings.Contains(err.Error(), noPath) {
		return fmt.Errorf("%w: %w", driver.ErrConflict, err) // once more, until its grace is over
	}
	return err
}

func (m *mover) Over(_ context.Context, end move.End) error {
	m.d.cfg.Logger.Info("intent ended", "job", string(m.r.Job), "intent", m.r.Moving.Intent.ID, "step", string(end.Kind), "detail", end.Why)
	m.r.over(end.Kind)
	return nil
}

func ends(kind driver.StepKind, why string) (move.End, error) {
	return move.End{Kind: kind, Why: why}, nil
}
