package cluster

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Variable is a variable with the times of its lock.
type Variable struct {
	api.Variable
	TTL, Delay time.Duration
	Renewed    time.Time
}

// Lost is when the lock can no longer be renewed.
func (v *Variable) Lost() time.Time { return v.Renewed.Add(2 * v.TTL) }

// Free is when another holder may have the lock.
func (v *Variable) Free() time.Time { return v.Lost().Add(v.Delay) }

// Variable is nil where there is none. Its lock is gone when its time is over.
func (t *Tables) Variable(namespace, path string, now time.Time) *Variable {
	v := t.variables[ID{namespace, path}]
	if v != nil && v.Lock != nil && !now.Before(v.Free()) {
		free := *v
		free.Lock = nil
		return &free
	}
	return v
}

// Variables lists those of a namespace below a prefix, by name.
func (t *Tables) Variables(namespace, prefix string) []*Variable {
	var out []*Variable
	for id, v := range t.variables {
		if (namespace == "*" || id.Namespace == namespace) && strings.HasPrefix(v.Path, prefix) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *Variable) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// PutVariable puts a variable in the place of another and sets its indexes and times.
func (tx *Tx) PutVariable(v *Variable, now time.Time) {
	v.Items = maps.Clone(v.Items)
	v.ModifyIndex, v.ModifyTime = tx.at, now.UnixNano()
	v.CreateIndex, v.CreateTime = v.ModifyIndex, v.ModifyTime
	id := ID{v.Namespace, v.Path}
	if old := tx.variables[id]; old != nil {
		v.CreateIndex, v.CreateTime = old.CreateIndex, old.CreateTime
	}
	tx.variables[id] = v
	tx.touched[Variables] = tx.at
}

// Renew notes when the lock of a variable was renewed, which does not change the variable.
func (tx *Tx) Renew(v *Variable, now time.Time) {
	renewed := *v
	renewed.Renewed = now
	tx.variables[ID{v.Namespace, v.Path}] = &renewed
}

// DeleteVariable removes a variable.
func (tx *Tx) DeleteVariable(namespace, path string) {
	delete(tx.variables, ID{namespace, path})
	tx.touched[Variables] = tx.at
}
