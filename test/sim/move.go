package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
)

// hold is how long a job that left waits for the next step of its intent. Then it goes on by
// itself under the settings before, as under every real scheduler.
const hold = 10 * time.Minute

// Advance implements driver.Driver. It answers Stopped once although the job has left by
// itself, or was ended by the call before (Intent.Discard), so that callers see every state
// of a real scheduler.
func (c *Cluster) Advance(ctx context.Context, intent driver.Intent) (driver.Step, error) {
	return do(ctx, c, OpAdvance, intent.Job, func() (driver.Step, error) { return c.moves.Advance(ctx, c, intent) })
}

// Check implements driver.Driver.
func (c *Cluster) Check(ctx context.Context, intent driver.Intent) error {
	_, err := about(ctx, c, OpCheck, intent.Job, func(j *job) (none struct{}, err error) {
		m := c.mover(j)
		if end := move.Stands(m.View(intent), m.Record(), intent); end.Kind != "" {
			return none, fmt.Errorf("intent %s: %w: %s", intent.ID, driver.ErrConflict, end.Why)
		}
		return none, m.Judge(ctx, intent)
	})
	return err
}

// mover is a job under the cluster's lock, with a copy of its record.
//
// An attempt that says that it saved is ended in that moment (heard), and what makes an
// intent void is an event, which does the rest.
type mover struct {
	move.Defaults
	*Cluster
	*job
	rec move.Record
}

var _ move.Job = (*mover)(nil)

func (c *Cluster) mover(j *job) *mover { return &mover{Cluster: c, job: j, rec: j.intents.Clone()} }

// Look implements move.Scheduler. The caller holds the lock.
func (c *Cluster) Look(_ context.Context, id driver.JobID, _ string) (move.Job, func(), error) {
	j, err := c.find(id)
	if err != nil {
		return nil, nil, err
	}
	j.touched = c.now
	return c.mover(j), func() {}, nil
}

func (m *mover) Record() *move.Record { return &m.rec }

func (m *mover) Attempt() int { return m.view.Attempt }

func (m *mover) Save(context.Context) error {
	m.intents = m.rec.Clone()
	return nil
}

func (m *mover) View(driver.Intent) move.View {
	v := move.View{Job: m.view.Clone()}
	switch m.view.State {
	case driver.Running:
	case driver.Pending, driver.Stopped:
		v.At = move.Waits
	default:
		v.End = move.End{Kind: driver.StepFinished, Why: string(m.view.State)}
	}
	switch r := m.rec.Moving; {
	case r == nil && m.view.State == driver.Pending && m.cause == driver.CauseMemory:
		v.End = move.End{Kind: driver.StepSuperseded, Why: "the owner's memory limit returns"}
	case r != nil:
		v.Changed = r.Phase == move.Changed && m.intent == r.Intent.ID
	}
	return v
}

// Ask implements move.Job. A job that cannot save or ignore the signal dies of it.
func (m *mover) Ask(context.Context) error {
	r, cp, intent := m.current(), *m.rec.Moving.Intent.Checkpoint, m.rec.Moving.Intent.ID
	if m.act.Checkpoint < 0 && !m.act.IgnoreSignal {
		m.end(r, driver.Failed, 128+int(unix.SignalNum(cp.SignalName())), "killed by "+cp.Signal)
		return nil
	}
	r.signalled = &cp
	m.during(r, cp.Grace, func() {
		if now := m.intents.Moving; now != nil && now.Intent.ID == intent && m.view.State == driver.Running {
			m.intents.Close(driver.StepAbandoned, "did not save in time")
			m.changed(m.job)
		}
	})
	return nil
}

func (m *mover) Stop(context.Context) error {
	m.goesOn(m.current(), exitKilled)
	return nil
}

func (m *mover) Change(context.Context) (move.End, error) {
	in := m.rec.Moving.Intent
	m.view.Change = in.Change.Clone()
	m.cause, m.intent, m.note = driver.CauseIntent, in.ID, in.Note
	m.changed(m.job)
	return move.End{}, nil
}

func (m *mover) Start(context.Context) (move.End, error) {
	if m.view.State == driver.Stopped {
		m.enqueue(m.job, driver.CauseIntent, m.rec.Moving.Intent.ID)
		return move.End{}, nil
	}
	if m.view.Attempt == 0 { // the queue does not move up for an intent
		m.view.NotBefore = time.Time{}
	}
	m.changed(m.job)
	m.schedule()
	return move.End{}, nil
}

// Release implements driver.Releaser.
func (c *Cluster) Release(ctx context.Context, id driver.JobID) error {
	_, err := about(ctx, c, OpRelease, id, func(j *job) (none struct{}, err error) {
		if !j.view.NotBefore.IsZero() && j.view.Attempt == 0 {
			j.view.NotBefore = time.Time{}
			c.changed(j)
			c.schedule()
		}
		return none, nil
	})
	return err
}

// expire lets a job go on whose intent is not advanced any more.
func (c *Cluster) expire(j *job, intent string) {
	r := j.intents.Moving
	if r == nil || r.Intent.ID != intent || j.view.State != driver.Stopped {
		return
	}
	until := j.touched.Add(hold)
	kind := move.Overdue(r, true, until, c.now)
	if kind == "" {
		c.after(until.Sub(c.now), func() { c.expire(j, intent) })
		return
	}
	j.intents.Close(kind, "the tuner did not come back")
	j.view.Change, j.note = j.view.Attempts[len(j.view.Attempts)-1].Change, ""
	c.enqueue(j, driver.CauseLate, "")
}

// Judge implements move.Job.
func (m *mover) Judge(_ context.Context, in driver.Intent) error {
	if err := m.feasible(in); err != nil {
		return fmt.Errorf("intent %s: %w", in.ID, err)
	}
	return nil
}

func (m *mover) feasible(in driver.Intent) error {
	ch, room := in.Change, m.resources(in.Change)
	if err := move.JudgeChange(ch); err != nil {
		return err
	}
	if len(ch.Args) > 0 {
		return fmt.Errorf("%w: a batch script has no arguments to change", driver.ErrUnsupported)
	}
	if err := m.canHold(room); err != nil || m.view.State != driver.Running {
		return err
	}
	if err := move.Judge(in, !m.noRequeue); err != nil || ch.Empty() { // the way back to what its owner asked for is always open
		return err
	}
	return m.grow(m.current(), room.Room())
}

// ownerChanges is what an edit by the owner does: intents on their way are void,
// and a job that one of them holds goes on as its owner wrote it.
func (c *Cluster) ownerChanges(j *job) {
	if j.view.State.Ended() {
		return
	}
	j.view.Source = append(slices.Clip(j.view.Source), "\n# changed by its owner\n"...)
	j.view.Fingerprint = driver.Fingerprint(j.view.Source, j.spec.Variables)
	c.changed(j)
	if j.intents.Moving == nil {
		return
	}
	j.intents.Close(driver.StepSuperseded, "its owner changed the job")
	if j.view.State == driver.Running {
		return // the attempt goes on by itself after it saved
	}
	j.view.Change, j.note = driver.Change{}, ""
	if j.view.State == driver.Stopped {
		c.enqueue(j, driver.CauseSubmitted, "")
		return
	}
	j.cause, j.intent = driver.CauseSubmitted, ""
}
