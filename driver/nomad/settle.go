package nomad

import (
	"context"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// going is what happens to a job whose attempt we ended.
type going int

const (
	stays   going = iota // nothing of ours
	moves                // it left for an intent, which goes on
	reruns               // it left for an intent that was given up
	returns              // it was killed for memory under a change
)

// goes returns why a job goes on although its attempt has ended.
func (d *Driver) goes(f *facts) going {
	a, r := f.latest(), f.rec
	if a == nil || r == nil || f.stopped() || r.Finished {
		return stays
	}
	t := view.TaskOf(a, f.task)
	if m := r.Moving; m != nil && a.ID == r.From.Alloc && m.Intent.Checkpoint != nil && view.Over(a) {
		if code, left := view.Left(a, f.task, r.From.Since); left && code == m.Intent.Checkpoint.Exit && code != 0 && t.Exit == code {
			return moves
		}
	}
	if l := r.Late; l != nil && a.ID == l.Alloc && view.Over(a) && f.dead() && a.JobVersion == f.version() {
		if code, left := view.Left(a, f.task, l.Since); left && code == l.Exit && t.Exit == code { // else it has run again since, and ended otherwise
			return reruns
		}
	}
	if t.Memory && (view.Over(a) || t.Waits) && a.JobVersion == f.version() && !f.has().Empty() {
		return returns
	}
	return stays
}

// settle takes the steps that are the driver's own, in any call that looks. The caller holds
// the job. It reports whether something was done.
func (d *Driver) settle(ctx context.Context, f *facts) (bool, error) {
	r := f.rec
	m := newMover(d, f, d.look(f))
	passed, _ := m.past()
	a := f.latest()
	switch {
	case a != nil && !f.stopped() && view.Again(a, f.task) && spec.ObservedOnly(f.own) == "":
		r.end(driver.StepFinished, "its work was done; Nomad began it again in its place, and that is stopped")
		return true, d.stopAgain(ctx, f)
	case r.Finished && !f.stopped() && !f.ownersWord(), f.hadFinished():
		r.ignore(f)
		return true, d.stopAgain(ctx, f)
	case r.Finished && r.Own != nil && f.ownersWord() && !f.stopped():
		r.Finished = false // its owner runs it again
		return true, d.save(ctx, r)
	case m.registered(), r.inPlace() && f.version() == r.From.Before, passed != "":
		// Its caller may have given it up for the same reason, and not ask again.
		step, err := new(move.Machine).Proceed(ctx, m)
		return step.Kind.Done(), err
	}
	switch d.goes(f) {
	case stays, moves:
		return false, nil
	case reruns:
		// It saved and left for an intent that was given up, and its policy does not start it.
		mark := spec.Mark{Cause: view.CauseRescheduled, Again: 1}
		if f.mark != nil {
			mark = *f.mark
			mark.Again++
		}
		mark.Change = f.has()
		return true, d.reregister(ctx, f, &mark, "it saved too late and runs again")
	case returns:
		// Memory comes back first where the change had less, then all of its owner's settings.
		was, next := f.has(), driver.Change{}
		if own := spec.Resources(f.own).MemoryBytes; was.MemoryBytes > 0 && was.MemoryBytes < own {
			next = was
			next.MemoryBytes = 0
		}
		r.end(driver.StepSuperseded, "the attempt was killed for memory under a change")
		return true, d.reregister(ctx, f, &spec.Mark{Cause: driver.CauseMemory, Change: next}, "killed for memory under a change; its owner's returns")
	}
	return false, nil
}

// verify looks up the result of the registration.
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
// before that, the signal would look like a kill for memory in the events.
func (m *mover) kill(ctx context.Context, a *api.AllocationListStub) {
	if moving := m.f.rec.Moving; !moving.Intent.Discard || a.ID != m.r.From.Alloc || !view.Ending(a, m.f.task) {
		return
	}
	if err := m.d.c.task(ctx, m.f.at, a.ID, "signal", map[string]string{"Signal": "SIGKILL", "Task": m.f.task}); err != nil {
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
	return spec.Resources(after).Room().Beyond(spec.Resources(before).Room())
}

// undo takes a registration back that waits for room: it would end the attempt, or keep
// it waiting, at a time that no one chose. To what it had Nomad returns without a
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
