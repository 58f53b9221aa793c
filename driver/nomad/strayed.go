package nomad

import (
	"context"
	"errors"
	"maps"

	"pitchpipe/driver"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// strayed looks at a restart by the template that was not brought about here: its owner
// wrote the variable, and the task has what he wrote. That is another attempt.
func (m *mover) strayed(ctx context.Context) (bool, error) {
	f, r := m.f, m.f.rec
	a := f.latest()
	if a == nil || r.Own == nil || r.Moving != nil {
		return false, nil
	}
	turn, ok := view.Rerendered(a, f.task, r.Looked)
	at, can := f.turning()
	if !ok || !can {
		return false, nil
	}
	v, err := m.d.c.variable(ctx, f.at, at.Path)
	if err != nil {
		return false, err
	}
	r.Looked = turn.At
	if (v == nil && len(r.Items) > 0 || v != nil && !m.ours(v)) && r.Theirs != a.ID {
		turn.Mark = spec.Mark{Cause: driver.CauseSubmitted, Change: f.registered()}
		if v != nil && v.Items[spec.AllocVariable] == a.ID {
			turn.Mark.Change = owners(turn.Mark.Change, v.Items)
		}
		r.Turns, r.Theirs = append(r.Turns, turn), a.ID
		m.d.cfg.Logger.Info("its owner wrote its variable", "job", string(f.id), "variable", at.Path)
	}
	return true, m.d.save(ctx, r)
}

// owners is a change with the variables of somebody's items.
func owners(c driver.Change, items map[string]string) driver.Change {
	c = c.Clone()
	if c.Env == nil {
		c.Env = map[string]string{}
	}
	for name, value := range items {
		if name != spec.AllocVariable && name != spec.Variable {
			c.Env[name] = value
		}
	}
	return c
}

// clear removes the variable of a job that has ended. It says nothing to another
// allocation, so nobody fails for it.
func (d *Driver) clear(ctx context.Context, f *facts) {
	at, ok := f.turning()
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
