package nomad

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// proceed takes the next step of the intent in progress.
func (m *move) proceed(ctx context.Context) (driver.Step, error) {
	f, moving := m.f, m.f.rec.Moving
	if f.mark != nil && f.mark.Intent == moving.Intent.ID {
		return m.verify(ctx)
	}
	if kind, why := m.past(); kind != "" {
		return m.close(ctx, kind, why)
	}
	if moving.Phase == turning {
		return m.turned(ctx)
	}
	if moving.Queued {
		if !m.d.queued(f) && m.job.Attempt == moving.Intent.Attempt {
			return m.step(driver.StepRunning, "its allocation is about to begin"), nil
		}
		if !m.d.queued(f) {
			return m.close(ctx, driver.StepSuperseded, "it began before it was changed")
		}
		return m.change(ctx)
	}
	return m.leave(ctx)
}

// past tells how the intent in progress, of which nothing is registered, has ended by what
// others did; empty: it goes on.
func (m *move) past() (kind driver.StepKind, why string) {
	f, moving := m.f, m.f.rec.Moving
	switch {
	case moving == nil:
	case m.job.State.Ended() && moving.Phase != turning:
		return driver.StepFinished, string(m.job.State)
	case f.version() != moving.Before || m.job.Fingerprint != moving.Intent.Fingerprint:
		return driver.StepSuperseded, "its owner registered the job anew"
	}
	return "", ""
}

// orClose closes the intent in progress where a step of it was refused: whoever asked for
// it gives it up then, and a job that left for it runs again. What is registered already
// is looked after all the same.
func (m *move) orClose(ctx context.Context, step driver.Step, err error) (driver.Step, error) {
	refused := errors.Is(err, driver.ErrDenied) || errors.Is(err, driver.ErrInvalid) || errors.Is(err, driver.ErrUnsupported) || errors.Is(err, driver.ErrNoRoom)
	if !refused || m.f.rec == nil { // a job of which nothing is on record has nothing in progress
		return step, err
	}
	moving := m.f.rec.Moving
	if moving == nil || moving.Phase == turning || m.f.mark != nil && m.f.mark.Intent == moving.Intent.ID {
		return step, err
	}
	_, cerr := m.close(ctx, driver.StepSuperseded, err.Error())
	return step, errors.Join(err, cerr)
}

// leave waits until a job that was asked to save did, and has it changed then; at once
// where the intent discards.
func (m *move) leave(ctx context.Context) (driver.Step, error) {
	f, moving := m.f, m.f.rec.Moving
	cp := moving.Intent.Checkpoint
	a := f.alloc(moving.Alloc)
	if a == nil || f.latest().ID != moving.Alloc {
		return m.close(ctx, driver.StepSuperseded, "Nomad has replaced its allocation")
	}
	if code, left := view.Left(a, f.task, moving.Since); left {
		return m.left(ctx, a, code)
	}
	if moving.Intent.Discard {
		return m.changeWhereItLives(ctx, a)
	}
	if !moving.Signalled {
		if view.Signals(a, f.task, moving.Since) == 0 {
			return m.step(driver.StepCheckpointing, "asked to save again"), m.signal(ctx)
		}
		moving.Signalled = true
	}
	late := time.Since(moving.Asked) >= cp.Grace
	if cp.Done != "" && !late { // later it has worked on since, and would lose that
		saved, err := m.said(ctx)
		if err != nil {
			return driver.Step{}, err
		}
		if saved {
			return m.changeWhereItLives(ctx, a)
		}
	}
	if late {
		return m.close(ctx, driver.StepAbandoned, fmt.Sprintf("did not save within %v", cp.Grace))
	}
	return m.step(driver.StepCheckpointing, "has not saved yet"), m.d.save(ctx, f.rec)
}

// changeWhereItLives changes a job that runs, once Nomad can be believed that it does.
func (m *move) changeWhereItLives(ctx context.Context, a *api.AllocationListStub) (driver.Step, error) {
	sure, err := m.lives(ctx, a)
	if err != nil {
		return driver.Step{}, err
	}
	if !sure {
		return m.step(driver.StepCheckpointing, "its node has come back, and has yet to say whether it runs"), m.d.save(ctx, m.f.rec)
	}
	return m.turnOrChange(ctx)
}

// settling is how long a client that has come back takes at most to tell its server what
// has ended while it was away: where its first word is lost it is said again 5 s later.
const settling = 10 * time.Second

// lives tells whether Nomad can be believed that the job runs. A client that was killed
// says that of a job which has ended meanwhile, until it has looked; where the job is
// replaced in that moment its end is noted as if it had been killed, and nobody can tell
// any more that its work was done.
func (m *move) lives(ctx context.Context, a *api.AllocationListStub) (bool, error) {
	moving := m.f.rec.Moving
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

// left: the run that was asked to save has ended.
func (m *move) left(ctx context.Context, a *api.AllocationListStub, code int) (driver.Step, error) {
	cp, t := m.f.rec.Moving.Intent.Checkpoint, view.TaskOf(a, m.f.task)
	m.f.rec.Moving.Signalled = true
	switch {
	case cp.Exit != 0 && code == cp.Exit && t.Exit == code && (t.Waits || view.Over(a)):
		return m.turnOrChange(ctx)
	case t.Exit < 0:
		return m.close(ctx, driver.StepAbandoned, fmt.Sprintf("it left with status %d and was started again by its restart policy before it was changed", code))
	case t.Waits:
		return m.close(ctx, driver.StepAbandoned, fmt.Sprintf("it left with status %d, and its restart policy starts it again", code))
	case view.Over(a) && m.f.dead():
		return m.close(ctx, driver.StepFinished, fmt.Sprintf("it left with status %d", code))
	}
	return m.step(driver.StepCheckpointing, fmt.Sprintf("it left with status %d; Nomad is clearing up", code)), nil
}

// said tells whether a whole line of the output since the signal says that it saved.
func (m *move) said(ctx context.Context) (bool, error) {
	moving := m.f.rec.Moving
	re, err := regexp.Compile(moving.Intent.Checkpoint.Done)
	if err != nil {
		return false, fmt.Errorf("pattern of a saved checkpoint: %w: %w", driver.ErrInvalid, err)
	}
	out, err := m.d.output(ctx, m.f.at, moving.Alloc, m.f.task, moving.Offset)
	if err != nil {
		return false, err
	}
	defer func() { _ = out.Close() }() // read only
	lines := bufio.NewReader(io.LimitReader(out, maxSaid))
	for {
		line, err := lines.ReadBytes('\n')
		if text, whole := bytes.CutSuffix(line, []byte("\n")); whole && re.Match(text) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, asked("output of "+moving.Alloc, readFS.in(m.f.at.namespace), err)
		}
	}
}

// maxSaid bounds what is read of an output for the line that says "saved".
const maxSaid = 16 << 20

// change registers the job with its change. What is to be registered is durable first.
func (m *move) change(ctx context.Context) (driver.Step, error) {
	f, moving := m.f, m.f.rec.Moving
	mark := markOf(moving.Intent)
	job, err := m.d.target(f, mark)
	if err != nil {
		return driver.Step{}, err
	}
	switch {
	case !moving.Queued:
		err = m.d.room(ctx, f, job)
	case f.blocked != nil && larger(f.job, job): // more would only keep it waiting for longer
		_, err = m.d.place(ctx, f.at, job)
	}
	switch {
	case errors.Is(err, driver.ErrNoRoom):
		return m.close(ctx, driver.StepNoRoom, err.Error())
	case errors.Is(err, driver.ErrUnsupported):
		return m.close(ctx, driver.StepSuperseded, err.Error())
	case err != nil:
		return driver.Step{}, err
	}
	moving.Phase = changing
	f.rec.Expect = &expected{Version: f.version() + 1, Mark: mark}
	if f.parent != nil {
		// Its wait ends, and it ends by itself as before where nobody comes again.
		if job, f.rec.Wait, err = spec.Hold(job, soonest(time.Time{})); err != nil {
			return driver.Step{}, err
		}
	}
	if err := m.d.save(ctx, f.rec); err != nil {
		return driver.Step{}, err
	}
	err = m.d.c.register(ctx, f.at, job, deref(f.job.JobModifyIndex), note(f.rec.Submission, moving.Intent.Note, mark))
	switch {
	case errors.Is(err, driver.ErrConflict):
		return m.step(driver.StepCheckpointing, "the job was registered meanwhile"), nil // the next look tells by whom
	case err != nil:
		return driver.Step{}, err
	}
	m.d.cfg.Logger.Info("changed", "job", string(f.id), "intent", moving.Intent.ID)
	m.d.eyes.poke(f.id)
	return m.step(driver.StepChanged, ""), nil
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

// undone: the attempt before had done its work when the change was registered, and
// Nomad runs the job again. That is stopped at once.
func (m *move) undone(ctx context.Context) (driver.Step, error) {
	r := m.f.rec
	r.Finished = true
	m.d.cfg.Logger.Warn("finished work was about to run again; stopped", "job", string(m.f.id), "intent", r.Moving.Intent.ID)
	r.ignore(m.f)
	if _, err := m.close(ctx, driver.StepFinished, "its work was done before the change; the accidental run of it is stopped"); err != nil {
		return driver.Step{}, err
	}
	step := m.step(driver.StepFinished, "its work was done before the change; the accidental run of it was stopped")
	return step, m.d.c.stop(ctx, m.f.at)
}

// repeated: the task of an allocation did its work and was begun again in place. That is
// stopped at once; its record is durable first, and whoever looks after a crash sees the
// same again.
func (m *move) repeated(ctx context.Context, a *api.AllocationListStub) error {
	r := m.f.rec
	r.Finished = true
	m.d.cfg.Logger.Warn("finished work was about to run again; stopped", "job", string(m.f.id), "allocation", a.ID)
	if r.Moving != nil {
		if _, err := m.close(ctx, driver.StepFinished, "its work was done; Nomad began it again in its place, and that is stopped"); err != nil {
			return err
		}
	}
	if err := m.d.save(ctx, r); err != nil {
		return err
	}
	return m.d.c.stop(ctx, m.f.at)
}

// hadFinished tells whether the allocation that the last change was of turns out to have
// done its work: a client that was cut off reports that when the next one may run already.
func (m *move) hadFinished() bool {
	f, r := m.f, m.f.rec
	if r.Moving != nil || r.Finished || r.Replaced == "" || f.stopped() || f.ownersWord() {
		return false
	}
	a := f.alloc(r.Replaced)
	return a != nil && view.Finished(a, f.task)
}

// doneBefore stops a run of work that was done already, as its client says late.
func (m *move) doneBefore(ctx context.Context) error {
	r := m.f.rec
	r.Finished = true
	m.d.cfg.Logger.Warn("finished work runs again, as its client says late; stopped", "job", string(m.f.id), "allocation", r.Replaced)
	r.ignore(m.f)
	if err := m.d.save(ctx, r); err != nil {
		return err
	}
	return m.d.c.stop(ctx, m.f.at)
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
