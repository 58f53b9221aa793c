package nomad

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
	"pitchpipe/driver/output"
)

// past is how the intent in progress, with nothing registered, has ended by what others
// did; empty: it goes on.
func (m *mover) past() (kind driver.StepKind, why string) {
	f, moving := m.f, m.f.rec.Moving
	switch {
	case moving == nil:
	case m.job.State.Ended() && !m.r.inPlace():
		return driver.StepFinished, string(m.job.State)
	case f.version() != m.r.From.Before || m.job.Fingerprint != moving.Intent.Fingerprint:
		return driver.StepSuperseded, "its owner registered the job again"
	}
	return "", ""
}

// settling is how long a client that has come back takes at most to report what has ended
// while it was away: it repeats a lost first report 5 s later.
const settling = 10 * time.Second

// lives reports whether Nomad can be believed that the job runs. A client that was killed
// says that of a job which has ended meanwhile, until it has looked; where the job is
// replaced in that moment its end is noted as if it had been killed, and nothing shows
// any more that its work was done.
func (m *mover) lives(ctx context.Context, a *api.AllocationListStub) (bool, error) {
	moving := &m.r.From
	if moving.Node == 0 {
		return true, nil
	}
	now, err := m.d.c.registered(ctx, a.NodeID)
	if err != nil {
		return false, err
	}
	if now != moving.Node {
		moving.Node, moving.Back = now, time.Now().UTC()
	}
	return moving.Back.IsZero() || time.Since(moving.Back) >= settling, nil
}

// Saved implements move.Job: a whole line of the output since the signal says so.
func (m *mover) Saved(ctx context.Context) (bool, error) {
	out, err := m.d.c.output(ctx, m.f.at, m.r.From.Alloc, m.f.task, stdout, m.r.From.Offset, false)
	if errors.Is(err, driver.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	said, cut := io.ReadAll(io.LimitReader(out, maxSaid))
	_ = out.Close() // read only
	if saved, err := output.Says(said, m.f.rec.Moving.Intent.Checkpoint.Done); saved || err != nil {
		return saved, err
	}
	return false, asked("output of "+m.r.From.Alloc, readFS, m.f.at.namespace, cut)
}

// maxSaid bounds what is read of an output for the line that says "saved".
const maxSaid = 16 << 20

// Plan implements move.Job: the change is to be written to the job's variable, or
// registered.
func (m *mover) Plan(ctx context.Context) (move.End, error) {
	m.r.From.Wrote = time.Time{}
	if m.r.Moving.Queued {
		return m.planRegistration(ctx)
	}
	a := m.f.alloc(m.r.From.Alloc)
	if at, _ := m.left(); at == move.Runs {
		sure, err := m.lives(ctx, a)
		if err != nil {
			return move.End{}, err
		}
		if !sure {
			return move.End{Kind: driver.StepCheckpointing, Why: "its node has come back, and has yet to say whether it runs"}, m.d.save(ctx, m.r)
		}
	}
	if planned, end, err := m.planInPlace(ctx, a); planned || end.Kind != "" || err != nil {
		return end, err
	}
	return m.planRegistration(ctx)
}

// planRegistration notes which version is to come. A registration is refused here that
// would have to wait for room.
func (m *mover) planRegistration(ctx context.Context) (move.End, error) {
	f, moving := m.f, m.r.Moving
	mark := markOf(moving.Intent)
	job, err := m.d.target(f, mark)
	if err != nil {
		return move.End{}, err
	}
	switch {
	case !moving.Queued:
		err = m.d.room(ctx, f, job)
	case f.blocked != nil && larger(f.job, job): // more would only keep it waiting for longer
		err = m.d.place(ctx, f.at, job)
	}
	switch {
	case errors.Is(err, driver.ErrNoRoom):
		return ends(driver.StepNoRoom, err.Error())
	case errors.Is(err, driver.ErrUnsupported):
		return ends(driver.StepSuperseded, err.Error())
	case err != nil:
		return move.End{}, err
	}
	m.r.Expect = &expected{Version: f.version() + 1, Mark: mark}
	m.target = job
	return move.End{}, nil
}

func (m *mover) Change(ctx context.Context) (move.End, error) {
	if m.r.inPlace() {
		return m.writes(ctx)
	}
	f, moving := m.f, m.r.Moving
	err := m.d.c.register(ctx, f.at, m.target, spec.Deref(f.job.JobModifyIndex), note(m.r.Submission, moving.Intent.Note, markOf(moving.Intent)))
	switch {
	case errors.Is(err, driver.ErrConflict):
		return ends(driver.StepCheckpointing, "the job was registered meanwhile") // the next look shows by whom
	case err != nil:
		return move.End{}, err
	}
	m.d.cfg.Logger.Info("changed", "job", string(f.id), "intent", moving.Intent.ID)
	m.d.informer.watchers.Changed(f.id)
	return move.End{}, nil
}

// register registers the change after all that could not be made in place.
func (m *mover) register(ctx context.Context) (move.End, error) {
	m.r.From.InPlace, m.r.From.Wrote = false, time.Time{}
	end, err := m.planRegistration(ctx)
	if err != nil || end.Kind != "" {
		return end, err
	}
	if err := m.d.save(ctx, m.r); err != nil {
		return move.End{}, err
	}
	if end, err = m.Change(ctx); err != nil || end.Kind != "" {
		return end, err
	}
	return ends(driver.StepChanged, "")
}

// Start implements move.Job: Nomad starts what is registered or written, and it is seen
// whether it did.
func (m *mover) Start(ctx context.Context) (move.End, error) {
	if m.r.inPlace() {
		return m.restarted(ctx)
	}
	return m.verify(ctx)
}

// note is the owner's source with what was changed in it, as the submission of a
// version that he did not write: without one Nomad would show his under its number.
func note(sub *api.JobSubmission, text string, m spec.Mark) *api.JobSubmission {
	if sub == nil || sub.Source == "" || sub.Format == "json" {
		return nil // in JSON there are no remarks: the version's own text
	}
	out := *sub
	out.Source = remarks(text, m) + sub.Source
	return &out
}

// remarks say what a version has that its source does not show.
func remarks(text string, m spec.Mark) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		b.WriteString("# " + strings.ReplaceAll(fmt.Sprintf(format, args...), "\n", " ") + "\n")
	}
	line("Registered by pitchpipe for intent %s: %s", m.Intent, text)
	c := m.Change
	if c.Cores > 0 {
		line("cores = %d", c.Cores)
	}
	if c.MemoryBytes > 0 {
		line("memory = %d bytes", c.MemoryBytes)
	}
	if c.TimeLimit > 0 {
		line("max_run_duration = %s", c.TimeLimit)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		line("env %s = %q", name, c.Env[name])
	}
	for _, flag := range slices.Sorted(maps.Keys(c.Args)) {
		line("args %s %q", flag, c.Args[flag])
	}
	return b.String()
}

// reregister registers the job with what a mark says over the version that was read; nil:
// as its owner wrote it.
func (d *Driver) reregister(ctx context.Context, f *facts, mark *spec.Mark, why string) (err error) {
	r, job, sub := f.rec, f.own, f.rec.Submission
	if mark == nil {
		job, err = spec.Owner(job)
	} else {
		job, err = spec.Apply(job, *mark)
		r.Expect, sub = &expected{Version: f.version() + 1, Mark: *mark}, note(sub, why, *mark)
	}
	if err != nil {
		return err
	}
	f.rename(job)
	if err := d.save(ctx, r); err != nil {
		return err
	}
	d.cfg.Logger.Warn("registered again", "job", string(f.id), "reason", why)
	return d.c.register(ctx, f.at, job, spec.Deref(f.job.JobModifyIndex), sub)
}

// stopAgain stops a run of work that was done. Its record is durable first: the next look
// after a crash sees the same again.
func (d *Driver) stopAgain(ctx context.Context, f *facts) error {
	f.rec.Finished = true
	d.cfg.Logger.Warn("finished work was about to run again; stopped", "job", string(f.id), "version", f.version())
	if err := d.save(ctx, f.rec); err != nil {
		return err
	}
	return d.c.stop(ctx, f.at)
}

// hadFinished reports whether the allocation that the last change was of turns out to have
// done its work: a client that was cut off reports that when the next one may run already.
func (f *facts) hadFinished() bool {
	r := f.rec
	if r.Moving != nil || r.Finished || r.Replaced == "" || f.stopped() || f.ownersWord() {
		return false
	}
	a := f.alloc(r.Replaced)
	return a != nil && view.Finished(a, f.task)
}

// ignore notes the allocations that run finished work again.
func (r *record) ignore(f *facts) {
	for _, a := range f.allocs {
		if a.JobVersion == f.version() && !slices.Contains(r.Ignored, a.ID) {
			r.Ignored = append(r.Ignored, a.ID)
			r.Attempts = slices.DeleteFunc(r.Attempts, func(k view.Known) bool { return k.Alloc == a.ID })
		}
	}
}
