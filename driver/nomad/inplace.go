package nomad

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// patienceInPlace is how long a template may take to be rendered and to restart its
// task, on top of the time that its author gives it.
const patienceInPlace = time.Minute

// has returns what the present allocation has instead of its owner's settings.
func (f *facts) has() driver.Change {
	if a := f.latest(); a != nil && f.rec != nil {
		for _, t := range slices.Backward(f.rec.Restarts) {
			if t.Alloc == a.ID {
				return t.Mark.Change.Clone()
			}
		}
	}
	return f.registered()
}

// registered is what the present version has instead of its owner's settings.
func (f *facts) registered() driver.Change {
	if f.mark == nil {
		return driver.Change{}
	}
	return f.mark.Change.Clone()
}

// inPlace is where the environment of the job can be changed in place; false: nowhere.
func (f *facts) inPlace() (spec.InPlace, bool) {
	id := place(f.id).id
	if parent := spec.Deref(f.job.ParentID); parent != "" && parent != id {
		return spec.InPlace{}, false // the children of a periodic job have one variable
	}
	return spec.MayRestart(f.own, id)
}

// placed is a write to the job's variable: where it is, what it is to hold, and what it
// holds now, nil where it is not there.
type placed struct {
	spec.InPlace
	items map[string]string
	now   *api.Variable
}

// placed is the write that an intent takes for an allocation; false: it takes a registration.
func (m *mover) placed(ctx context.Context, alloc string, in driver.Intent) (w placed, ok bool, err error) {
	if w.InPlace, ok = m.f.inPlace(); !ok {
		return w, false, nil
	}
	if w.items, ok = spec.Items(alloc, m.f.registered(), markOf(in)); !ok {
		return w, false, nil
	}
	w.now, err = m.d.c.variable(ctx, m.f.at, w.Path)
	if errors.Is(err, driver.ErrDenied) {
		m.d.cfg.Logger.Info("a change of the environment is registered, as its variable may not be read", "job", string(m.f.id), "error", err)
		return w, false, nil
	}
	return w, err == nil, err
}

// mayRestart reports whether an intent can be followed by a write to the job's variable alone.
func (m *mover) mayRestart(ctx context.Context, in driver.Intent) (bool, error) {
	alloc := m.f.latest().ID
	w, ok, err := m.placed(ctx, alloc, in)
	switch {
	case err != nil || !ok || m.ours(w.now):
		return ok, err
	case w.now.Items[spec.AllocVariable] == alloc:
		return false, fmt.Errorf("its owner set its environment by the variable %s: %w", w.Path, driver.ErrUnsupported)
	}
	m.d.cfg.Logger.Info("a change of the environment is registered, as its variable holds something else", "job", string(m.f.id), "variable", w.Path)
	return false, nil
}

// ours reports whether a variable is as it was last written here, or was written for an
// allocation before this one; or it is not there, and nothing was written.
func (m *mover) ours(v *api.Variable) bool {
	if v == nil {
		return true
	}
	alloc, meant := v.Items[spec.AllocVariable]
	return maps.Equal(v.Items, m.f.rec.Items) || meant && alloc != m.f.latest().ID
}

// planInPlace plans a write to the job's variable, if that can be.
func (m *mover) planInPlace(ctx context.Context, a *api.AllocationListStub) (planned bool, end move.End, err error) {
	from := &m.r.From
	if !from.InPlace || a == nil || view.Over(a) {
		return false, end, nil
	}
	w, ok, err := m.placed(ctx, from.Alloc, m.r.Moving.Intent)
	if err != nil || !ok {
		return false, end, err
	}
	if !m.ours(w.now) {
		end, err = ends(driver.StepSuperseded, "its owner wrote the variable "+w.Path)
		return false, end, err
	}
	// From here on what is there is ours or was.
	m.write, from.Wrote = w, time.Now().UTC()
	return true, end, nil
}

func (m *mover) writes(ctx context.Context) (move.End, error) {
	err := m.d.c.write(ctx, m.f.at, m.write.Path, m.write.items, m.write.now)
	switch {
	case errors.Is(err, driver.ErrDenied):
		m.d.cfg.Logger.Info("a change of the environment is registered, as its variable may not be written", "job", string(m.f.id), "error", err)
		return m.register(ctx)
	case errors.Is(err, driver.ErrInvalid):
		m.r.From.Wrote = time.Time{} // so that its refusal ends the intent
		return move.End{}, err
	case err != nil: // of a conflict the next look says who wrote it
		return move.End{}, err
	}
	m.d.cfg.Logger.Info("variable written", "job", string(m.f.id), "intent", m.r.Moving.Intent.ID, "variable", m.write.Path)
	m.d.informer.watchers.Changed(m.f.id)
	return move.End{}, nil
}

// restarted sees whether the template has restarted the task with what was written.
func (m *mover) restarted(ctx context.Context) (move.End, error) {
	f, moving := m.f, m.f.rec.Moving
	a := f.alloc(m.r.From.Alloc)
	if a == nil || f.latest().ID != m.r.From.Alloc {
		return ends(driver.StepSuperseded, "Nomad has replaced its allocation")
	}
	w, ok, err := m.placed(ctx, a.ID, moving.Intent)
	switch {
	case err != nil:
		return move.End{}, err
	case !ok:
		return ends(driver.StepSuperseded, "its variable may not be read any more")
	case w.now != nil && maps.Equal(w.now.Items, w.items):
	case !m.ours(w.now) || w.now == nil && len(f.rec.Items) > 0:
		return ends(driver.StepSuperseded, "its owner wrote the variable "+w.Path)
	case view.Over(a):
		return m.overInPlace(ctx, a)
	default: // a crash came before it was written
		m.write = w
		if end, err := m.writes(ctx); err != nil || end.Kind != "" {
			return end, err
		}
		return ends(driver.StepChanged, "its template is to restart it")
	}
	rendered, err := m.rendered(ctx, a, w.InPlace)
	if err != nil {
		return move.End{}, err
	}
	late := time.Since(m.r.From.Wrote) > patienceInPlace+w.Slack(f.own)
	var restart view.Restart
	var certain, doubtful bool
	if rendered > 0 {
		restart, certain, doubtful = view.Has(a, f.task, rendered)
	}
	switch {
	case certain:
		restart.Mark = markOf(moving.Intent)
		f.rec.Restarts, f.rec.Items = append(f.rec.Restarts, restart), w.items
		f.rec.Late = nil
		m.job = m.d.look(f)
		return ends(driver.StepStarted, "")
	case view.Over(a):
		return m.overInPlace(ctx, a)
	case rendered > 0 && (doubtful || late && view.TaskOf(a, f.task).State == "running"):
		return m.restart(ctx)
	case late:
		return m.takeBack(ctx, w)
	}
	return move.End{Kind: driver.StepChanged, Why: "its template has not restarted it yet"}, m.d.save(ctx, f.rec)
}

// overInPlace: the allocation is over and nothing of it ran with what was written. One
// that saved and left is registered with the change after all.
func (m *mover) overInPlace(ctx context.Context, a *api.AllocationListStub) (move.End, error) {
	cp, t := m.r.Moving.Intent.Checkpoint, view.TaskOf(a, m.f.task)
	if code, left := view.Left(a, m.f.task, m.r.From.Since); left && cp.Exit != 0 && code == cp.Exit && t.Exit == code {
		return m.register(ctx)
	}
	if !m.f.dead() {
		return move.End{Kind: driver.StepChanged, Why: "its allocation has ended"}, nil
	}
	return ends(driver.StepFinished, string(m.job.State))
}

// takeBack takes back what no template made anything of.
func (m *mover) takeBack(ctx context.Context, w placed) (move.End, error) {
	err := m.d.c.write(ctx, m.f.at, w.Path, m.f.rec.Items, w.now)
	if err != nil && !errors.Is(err, driver.ErrConflict) && !errors.Is(err, driver.ErrDenied) {
		return move.End{}, err
	}
	return ends(driver.StepAbandoned, fmt.Sprintf("its template did not restart it within %v", time.Since(m.r.From.Wrote).Round(time.Second)))
}

// rendered is when the file of the template got what was written, by the node's clock in
// nanoseconds; 0: it has not got it.
func (m *mover) rendered(ctx context.Context, a *api.AllocationListStub, at spec.InPlace) (int64, error) {
	text, when, err := m.d.c.file(ctx, m.f.at, a.ID, at.File)
	if err != nil || when.IsZero() {
		return 0, err
	}
	want := spec.Variable + "=" + m.r.Moving.Intent.ID
	for line := range bytes.Lines(text) {
		if string(bytes.TrimSpace(line)) == want {
			return when.UnixNano(), nil
		}
	}
	return 0, nil
}

// restartAgain is how long a restart has to show in the allocation's events.
const restartAgain = 10 * time.Second

// restart restarts a task in place whose template has been rendered and has not done so:
// Nomad's client drops that where the task is just being started.
func (m *mover) restart(ctx context.Context) (move.End, error) {
	moving := m.f.rec.Moving
	step := move.End{Kind: driver.StepChanged, Why: "restarted in place, as its template did not"}
	if time.Since(m.r.From.Restarted) < restartAgain {
		return step, nil
	}
	m.r.From.Restarted = time.Now().UTC()
	if err := m.d.save(ctx, m.f.rec); err != nil {
		return move.End{}, err
	}
	m.d.cfg.Logger.Info("its template was rendered while it began; restarted in place", "job", string(m.f.id), "intent", moving.Intent.ID)
	err := m.d.c.task(ctx, m.f.at, m.r.From.Alloc, "restart", map[string]string{"TaskName": m.f.task})
	if err != nil && (errors.Is(err, driver.ErrNotFound) || strings.Contains(strings.ToLower(err.Error()), "not running")) {
		err = nil // the next look shows it
	}
	return step, err
}

// clear removes the variable of a job that has ended. It says nothing to another
// allocation, so nothing fails for it.
func (d *Driver) clear(ctx context.Context, f *facts) {
	at, ok := f.inPlace()
	if !ok || len(f.rec.Items) == 0 {
		return
	}
	v, err := d.c.variable(ctx, f.at, at.Path)
	if err == nil && v != nil && maps.Equal(v.Items, f.rec.Items) {
		err = d.c.write(ctx, f.at, at.Path, nil, v)
	}
	if errors.Is(err, ErrNotLeading) || errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) {
		return // whichever call looks next
	}
	if err != nil {
		d.cfg.Logger.Info("the variable of a job that has ended is not removed", "job", string(f.id), "variable", at.Path, "error", err)
	}
	f.rec.Items = nil
}
