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

// patienceInPlace is for how long a template may take to be rendered and to restart its
// task, beside the time that its author gives it.
const patienceInPlace = time.Minute

// has is what the present allocation has instead of its owner's settings.
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
	if parent := deref(f.job.ParentID); parent != "" && parent != id {
		return spec.InPlace{}, false // the children of a periodic job have one variable
	}
	return spec.MayRestart(f.own, id)
}

// mayRestart reports whether an intent can be followed by a write to the job's variable alone.
func (m *mover) mayRestart(ctx context.Context, in driver.Intent) (bool, error) {
	f := m.f
	at, ok := f.inPlace()
	if !ok {
		return false, nil
	}
	alloc := f.latest().ID
	if _, ok := spec.Items(alloc, f.registered(), markOf(in)); !ok {
		return false, nil
	}
	v, err := m.d.c.variable(ctx, f.at, at.Path)
	if errors.Is(err, driver.ErrDenied) {
		m.d.cfg.Logger.Info("a change of the environment is registered, as its variable may not be read", "job", string(f.id), "error", err)
		return false, nil
	}
	if err != nil {
		return false, err
	}
	switch {
	case v == nil || m.ours(v):
		return true, nil
	case v.Items[spec.AllocVariable] == alloc:
		return false, fmt.Errorf("its owner set its environment by the variable %s: %w", at.Path, driver.ErrUnsupported)
	}
	m.d.cfg.Logger.Info("a change of the environment is registered, as its variable holds something else", "job", string(f.id), "variable", at.Path)
	return false, nil
}

// ours reports whether a variable is as it was last written here, or was written for an
// allocation before this one.
func (m *mover) ours(v *api.Variable) bool {
	alloc, meant := v.Items[spec.AllocVariable]
	return maps.Equal(v.Items, m.f.rec.Items) || meant && alloc != m.f.latest().ID
}

// planInPlace plans a write to the job's variable, if that can be.
func (m *mover) planInPlace(ctx context.Context, a *api.AllocationListStub) (planned bool, end move.End, err error) {
	f, from := m.f, &m.r.From
	at, ok := f.inPlace()
	if !from.InPlace || !ok || a == nil || view.Over(a) {
		return false, end, nil
	}
	if _, ok := spec.Items(from.Alloc, f.registered(), markOf(m.r.Moving.Intent)); !ok {
		return false, end, nil
	}
	v, err := m.d.c.variable(ctx, f.at, at.Path)
	switch {
	case errors.Is(err, driver.ErrDenied):
		return false, end, nil
	case err != nil:
		return false, end, err
	case v != nil && !m.ours(v):
		end, err = ends(driver.StepSuperseded, "its owner wrote the variable "+at.Path)
		return false, end, err
	}
	m.index = 0
	if v != nil {
		m.index = v.ModifyIndex
	}
	// From here on what is there is ours or was.
	from.Wrote = time.Now().UTC()
	return true, end, nil
}

// write writes the variable.
func (m *mover) write(ctx context.Context) (move.End, error) {
	f := m.f
	at, _ := f.inPlace()
	items, _ := spec.Items(m.r.From.Alloc, f.registered(), markOf(m.r.Moving.Intent))
	err := m.d.c.write(ctx, f.at, at.Path, items, m.index)
	switch {
	case errors.Is(err, driver.ErrConflict):
		return ends(driver.StepChanged, "its variable was written meanwhile") // the next look tells by whom
	case errors.Is(err, driver.ErrDenied):
		m.d.cfg.Logger.Info("a change of the environment is registered, as its variable may not be written", "job", string(f.id), "error", err)
		return m.register(ctx)
	case err != nil:
		return move.End{}, err
	}
	m.d.cfg.Logger.Info("variable written", "job", string(f.id), "intent", m.r.Moving.Intent.ID, "variable", at.Path)
	m.d.informer.poke(f.id)
	return move.End{}, nil
}

// restarted sees whether the template has restarted the task with what was written.
func (m *mover) restarted(ctx context.Context) (move.End, error) {
	f, moving := m.f, m.f.rec.Moving
	a := f.alloc(m.r.From.Alloc)
	at, ok := f.inPlace()
	if a == nil || !ok || f.latest().ID != m.r.From.Alloc {
		return ends(driver.StepSuperseded, "Nomad has replaced its allocation")
	}
	items, _ := spec.Items(m.r.From.Alloc, f.registered(), markOf(moving.Intent))
	v, err := m.d.c.variable(ctx, f.at, at.Path)
	if errors.Is(err, driver.ErrDenied) {
		return ends(driver.StepSuperseded, err.Error())
	}
	if err != nil {
		return move.End{}, err
	}
	switch {
	case v != nil && maps.Equal(v.Items, items):
	case v == nil && len(f.rec.Items) == 0, v != nil && m.ours(v):
		return m.again(ctx, a, at, items, v) // a crash came before it was written
	default:
		return ends(driver.StepSuperseded, "its owner wrote the variable "+at.Path)
	}
	rendered, err := m.rendered(ctx, a, at)
	if err != nil {
		return move.End{}, err
	}
	late := time.Since(m.r.From.Wrote) > patienceInPlace+at.Slack(f.own)
	var restart view.Restart
	var certain, doubtful bool
	if rendered > 0 {
		restart, certain, doubtful = view.Has(a, f.task, rendered)
	}
	switch {
	case certain:
		restart.Mark = markOf(moving.Intent)
		f.rec.Restarts, f.rec.Items = append(f.rec.Restarts, restart), items
		f.rec.Late = nil
		m.job = m.d.look(f)
		return ends(driver.StepStarted, "")
	case view.Over(a):
		return m.overInPlace(ctx, a)
	case rendered > 0 && (doubtful || late && view.TaskOf(a, f.task).State == "running"):
		return m.restart(ctx)
	case late:
		return m.takeBack(ctx, at, v.ModifyIndex)
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

// again writes what a crash kept from being written.
func (m *mover) again(ctx context.Context, a *api.AllocationListStub, at spec.InPlace, items map[string]string, v *api.Variable) (move.End, error) {
	if view.Over(a) {
		return m.overInPlace(ctx, a)
	}
	index := uint64(0)
	if v != nil {
		index = v.ModifyIndex
	}
	err := m.d.c.write(ctx, m.f.at, at.Path, items, index)
	switch {
	case errors.Is(err, driver.ErrDenied), errors.Is(err, driver.ErrInvalid):
		m.r.From.Wrote = time.Time{} // so that its refusal ends the intent
		return move.End{}, err
	case errors.Is(err, driver.ErrConflict):
		err = nil
	}
	return move.End{Kind: driver.StepChanged, Why: "its template is to restart it"}, err
}

// takeBack takes back what no template made anything of.
func (m *mover) takeBack(ctx context.Context, at spec.InPlace, index uint64) (move.End, error) {
	var err error
	if len(m.f.rec.Items) == 0 {
		err = m.d.c.remove(ctx, m.f.at, at.Path, index)
	} else {
		err = m.d.c.write(ctx, m.f.at, at.Path, m.f.rec.Items, index)
	}
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
	err := m.d.c.restart(ctx, m.f.at, m.r.From.Alloc, m.f.task)
	if err != nil && (errors.Is(err, driver.ErrNotFound) || strings.Contains(strings.ToLower(err.Error()), "not running")) {
		err = nil // the next look tells
	}
	return step, err
}

// clear removes the variable of a job that has ended. It says nothing to another
// allocation, so nobody fails for it.
func (d *Driver) clear(ctx context.Context, f *facts) {
	at, ok := f.inPlace()
	if !ok || len(f.rec.Items) == 0 {
		return
	}
	v, err := d.c.variable(ctx, f.at, at.Path)
	if err == nil && v != nil && maps.Equal(v.Items, f.rec.Items) {
		err = d.c.remove(ctx, f.at, at.Path, v.ModifyIndex)
	}
	if errors.Is(err, ErrNotLeading) || errors.Is(err, driver.ErrTransient) || errors.Is(err, driver.ErrUnknown) {
		return // whoever looks next
	}
	if err != nil {
		d.cfg.Logger.Info("the variable of a job that has ended is not removed", "job", string(f.id), "variable", at.Path, "error", err)
	}
	f.rec.Items = nil
}
