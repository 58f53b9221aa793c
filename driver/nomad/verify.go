package nomad

import (
	"context"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// verify looks what became of the registration.
func (m *mover) verify(ctx context.Context) (move.End, error) {
	f := m.f
	var fresh *api.AllocationListStub
	ending := false // something of a version before is not over
	for _, a := range f.allocs {
		switch {
		case a.JobVersion == f.version() && a.ID != m.r.From.Alloc:
			fresh = a
		case a.ID != m.r.From.Alloc && a.CreateIndex <= m.r.From.Newest:
		case view.Finished(a, f.task):
			m.r.ignore(f)
			if err := m.d.stopAgain(ctx, f); err != nil {
				return move.End{}, err
			}
			return ends(driver.StepFinished, "its work was done before the change; the accidental run of it was stopped")
		case !view.Over(a):
			ending = true
			m.kill(ctx, a)
		}
	}
	switch {
	case ending && f.blocked != nil && fresh == nil:
		return m.undo(ctx, "there is no room ("+view.Reason(f.blocked)+")")
	case ending:
		return move.End{Kind: driver.StepChanged, Why: "the attempt before is being ended"}, m.d.save(ctx, f.rec)
	case fresh != nil:
		return ends(driver.StepStarted, "")
	case f.stopped():
		return ends(driver.StepFinished, "the job was stopped")
	case f.blocked != nil && m.grown():
		return m.undo(ctx, "there is no room ("+view.Reason(f.blocked)+")")
	case f.blocked != nil:
		return ends(driver.StepStarted, view.Reason(f.blocked))
	}
	return move.End{Kind: driver.StepChanged, Why: ""}, m.d.save(ctx, f.rec)
}

// kill spares an attempt that is discarded, and that Nomad has begun to end, the rest of its
// kill_timeout: where its kill_signal asks it to save, it would go on until it has. Sent
// before that, the signal would be a kill for memory to whoever reads the events.
func (m *mover) kill(ctx context.Context, a *api.AllocationListStub) {
	if moving := m.f.rec.Moving; !moving.Intent.Discard || a.ID != m.r.From.Alloc || !view.Ending(a, m.f.task) {
		return
	}
	if err := m.d.c.signal(ctx, m.f.at, a.ID, m.f.task, "SIGKILL"); err != nil {
		m.d.cfg.Logger.Info("a discarded attempt is left to its kill_timeout", "job", string(m.f.id), "allocation", a.ID, "error", err)
	}
}

// grown reports whether what is registered needs more room than the attempt before had.
func (m *mover) grown() bool {
	before := m.f.own
	if was, ok := m.f.rec.Ours[m.r.From.Before]; ok {
		if job, err := spec.Apply(m.f.own, was); err == nil {
			before = job
		}
	}
	return larger(before, m.f.job)
}

// larger reports whether a job needs more room after a change.
func larger(before, after *api.Job) bool {
	b, a := spec.Resources(before), spec.Resources(after)
	return a.Cores > b.Cores || a.MemoryBytes > b.MemoryBytes
}

// undo takes a registration back that waits for room: it would end the attempt, or keep
// it waiting, at a time that nobody chose. To what it had Nomad returns without a
// restart.
func (m *mover) undo(ctx context.Context, why string) (move.End, error) {
	f := m.f
	f.rec.Back = f.version() + 1
	var mark *spec.Mark
	if was, ok := f.rec.Ours[m.r.From.Before]; ok {
		mark = &was
	}
	if err := m.d.reregister(ctx, f, mark, why); err != nil {
		return move.End{}, err
	}
	return ends(driver.StepNoRoom, why)
}
