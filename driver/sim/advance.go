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
func (c *Cluster) Advance(ctx context.Context, intent driver.Intent) (step driver.Step, err error) {
	err = c.do(ctx, OpAdvance, intent.Job, func() error {
		step, err = c.moves.Advance(ctx, c, intent)
		return err
	})
	if err != nil {
		return driver.Step{}, err
	}
	return step, nil
}

// Check implements driver.Driver.
func (c *Cluster) Check(ctx context.Context, intent driver.Intent) error {
	return c.do(ctx, OpCheck, intent.Job, func() error {
		v, err := c.look(intent.Job)
		if err != nil {
			return err
		}
		if end := move.Stands(v.View(intent), v.Record(), intent); end.Kind != "" {
			return fmt.Errorf("intent %s: %w: %s", intent.ID, driver.ErrConflict, end.Why)
		}
		return v.Judge(ctx, intent)
	})
}

// mover is a job under the cluster's lock, with a copy of its record.
type mover struct {
	*Cluster
	*job
	rec move.Record
}

var _ move.Job = (*mover)(nil)

func (c *Cluster) look(id driver.JobID) (*mover, error) {
	j, err := c.find(id)
	if err != nil {
		return nil, err
	}
	return &mover{c, j, j.intents.Clone()}, nil
}

// Look implements move.Scheduler. The caller holds the lock.
func (c *Cluster) Look(_ context.Context, id driver.JobID, _ string) (move.Job, func(), error) {
	m, err := c.look(id)
	if err != nil {
		return nil, nil, err
	}
	m.touched = c.now
	return m, func() {}, nil
}

// Record implements move.Job.
func (m *mover) Record() *move.Record { return &m.rec }

// Attempt implements move.Job.
func (m *mover) Attempt() int { return m.view.Attempt }

// Save implements move.Job.
func (m *mover) Save(context.Context) error {
	m.intents = m.rec.Clone()
	return nil
}

// View implements move.Job.
func (m *mover) View(driver.Intent) move.View {
	v := move.View{Job: m.snapshot()}
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

// Begin implements move.Job.
func (m *mover) Begin(context.Context) (move.End, error) { return move.End{}, nil }

// Ask implements move.Job. A job that can neither save nor ignore the signal dies of it.
func (m *mover) Ask(context.Context) error {
	r, cp, intent := m.current(), *m.rec.Moving.Intent.Checkpoint, m.rec.Moving.Intent.ID
	if !m.act.Saves && !m.act.IgnoreSignal {
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

// Saved implements move.Job: an attempt that says so is ended in that moment (heard).
func (m *mover) Saved(context.Context) (bool, error) { return false, nil }

// Stop implements move.Job.
func (m *mover) Stop(context.Context) error {
	m.goesOn(m.current(), exitKilled)
	return nil
}

// Keep implements move.Job.
func (m *mover) Keep(context.Context) error { return nil }

// Plan implements move.Job.
func (m *mover) Plan(context.Context) (move.End, error) { return move.End{}, nil }

// Change implements move.Job.
func (m *mover) Change(context.Context) (move.End, error) {
	in := m.rec.Moving.Intent
	m.view.Change = in.Change.Clone()
	m.cause, m.intent, m.note = driver.CauseIntent, in.ID, in.Note
	m.changed(m.job)
	return move.End{}, nil
}

// Start implements move.Job.
func (m *mover) Start(context.Context) (move.End, error) {
	if m.view.State == driver.Stopped {
		m.enqueue(m.job, driver.CauseIntent, m.rec.Moving.Intent.ID)
		return move.End{}, nil
	}
	if m.view.Attempt == 0 { // the queue does not move up for an intent
		m.notBefore = m.now
	}
	m.changed(m.job)
	m.schedule()
	return move.End{}, nil
}

// Over implements move.Job. What makes an intent void is an event, which has done the rest.
func (m *mover) Over(context.Context, move.End) error { return nil }

// expire has a job go on for whose intent nobody comes.
func (c *Cluster) expire(j *job, intent string) {
	r := j.intents.Moving
	if r == nil || r.Intent.ID != intent || j.view.State != driver.Stopped {
		return
	}
	kind := move.Overdue(r, true, j.touched, c.now, hold)
	if kind == "" {
		c.after(j.touched.Add(hold).Sub(c.now), func() { c.expire(j, intent) })
		return
	}
	j.intents.Close(kind, "the tuner did not come back")
	j.view.Change, j.note = j.view.Attempts[len(j.view.Attempts)-1].Change, ""
	c.enqueue(j, driver.CauseLate, "")
}

// Judge implements move.Job.
func (m *mover) Judge(_ context.Context, in driver.Intent) error {
	if err := m.feasible(m.job, in); err != nil {
		return fmt.Errorf("intent %s: %w", in.ID, err)
	}
	return nil
}

// feasible reports whether the cluster could carry the intent out.
func (c *Cluster) feasible(j *job, in driver.Intent) error {
	ch := in.Change
	if err := move.JudgeChange(ch); err != nil {
		return err
	}
	if len(ch.Args) > 0 {
		return fmt.Errorf("%w: a batch script has no arguments to change", driver.ErrUnsupported)
	}
	if err := c.canHold(j.resources(ch)); err != nil {
		return err
	}
	if j.view.State != driver.Running {
		return nil
	}
	if err := move.Judge(in, !j.noRequeue); err != nil {
		return err
	}
	if ch.Empty() { // the way back to what its owner asked for is always open
		return nil
	}
	return c.grow(j.current(), roomOf(j.resources(ch)))
}

func roomOf(r driver.Resources) driver.Room {
	return driver.Room{Cores: r.Cores, Memory: r.MemoryBytes}
}

// grow refuses more than an attempt has where its job would have to wait for that: behind
// those that wait, or since others that are being moved will have it.
func (c *Cluster) grow(r *run, want driver.Room) error {
	has := roomOf(r.took)
	if slices.ContainsFunc(c.queue, func(j *job) bool { return !j.notBefore.After(c.now) }) {
		return driver.Grow(has, want)
	}
	var nodes []driver.Room
	for _, n := range c.nodes {
		free := driver.Room{Cores: n.spec.Cores - n.cores, Memory: n.spec.MemoryBytes - n.memory}
		if n == r.node {
			free = free.Plus(has)
		}
		for _, other := range c.jobs {
			if m := other.intents.Moving; m != nil && !m.Queued && other.runs[len(other.runs)-1].node == n {
				free = free.Minus(more(other.current(), roomOf(other.resources(m.Intent.Change))))
			}
		}
		nodes = append(nodes, free)
	}
	return driver.Grow(has, want, nodes...)
}

// more is what a job that is being moved will take beside what it has; r is its attempt,
// nil between two.
func more(r *run, to driver.Room) driver.Room {
	if r == nil {
		return to
	}
	to = to.Minus(roomOf(r.took))
	return driver.Room{Cores: max(to.Cores, 0), Memory: max(to.Memory, 0)}
}

// ownerChanges is what an edit by the owner does: intents on their way are void,
// and a job that one of them holds goes on as its owner wrote it.
func (c *Cluster) ownerChanges(j *job) {
	if j.view.State.Ended() {
		return
	}
	j.view.Source = append(slices.Clip(j.view.Source), "\n# changed by its owner\n"...)
	j.view.Fingerprint = fingerprint(j.view.Source, j.spec.Variables)
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
