package vars

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/nomad/api"
)

// Hooks tie the variables to a cluster. Each may be nil.
type Hooks struct {
	// Next is the cluster's next index. It is called with the variables locked.
	Next func() uint64
	// Allows tells whether a token may list, read, write or destroy a path.
	Allows func(token, namespace, path, capability string) bool
	// Management tells whether a token may everything: it alone sees others' locks.
	Management func(token string) bool
	// Changed is told what was written, or the path alone of what was deleted. It is
	// called without the lock, in the order of the indexes of one caller.
	Changed func(v api.Variable, deleted bool, index uint64)
}

type key struct{ namespace, path string }

// entry is a variable with its lock's clock.
type entry struct {
	api.Variable
	ttl, delay time.Duration
	renewed    time.Time
}

// lost is when the lock can no longer be renewed, free when somebody else may have it.
func (e *entry) lost() time.Time { return e.renewed.Add(2 * e.ttl) }
func (e *entry) free() time.Time { return e.lost().Add(e.delay) }

// Vars are the variables of a cluster. Its methods may be called at the same time.
type Vars struct {
	now   func() time.Time
	hooks Hooks

	mu      sync.Mutex
	entries map[key]*entry
	index   uint64 // of the last change of any
	changed chan struct{}
}

// New makes an empty set of variables whose locks age by now.
func New(now func() time.Time) *Vars {
	return &Vars{now: now, entries: map[key]*entry{}, changed: make(chan struct{})}
}

// Tie hands the hooks over, before the first request.
func (v *Vars) Tie(h Hooks) *Vars {
	v.hooks = h
	return v
}

// touch is a change: it takes the next index and wakes those who wait. The caller holds
// the lock.
func (v *Vars) touch() uint64 {
	if v.hooks.Next != nil {
		v.index = v.hooks.Next()
	} else {
		v.index++
	}
	close(v.changed)
	v.changed = make(chan struct{})
	return v.index
}

// expire frees the locks whose time is over. The caller holds the lock.
func (v *Vars) expire() {
	now := v.now()
	for _, e := range v.entries {
		if e.Lock != nil && !now.Before(e.free()) {
			e.Lock = nil
			e.ModifyIndex = v.touch()
		}
	}
}

// nextFree is when the next lock will be free. The caller holds the lock.
func (v *Vars) nextFree() (time.Time, bool) {
	var next time.Time
	for _, e := range v.entries {
		if e.Lock != nil && (next.IsZero() || e.free().Before(next)) {
			next = e.free()
		}
	}
	return next, !next.IsZero()
}

// Get reads a variable, nil where there is none.
func (v *Vars) Get(namespace, path string) *api.Variable {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	e := v.entries[key{namespace, path}]
	if e == nil {
		return nil
	}
	return e.copy()
}

// Items are those of a variable, nil where there is none.
func (v *Vars) Items(namespace, path string) map[string]string {
	if found := v.Get(namespace, path); found != nil {
		return found.Items
	}
	return nil
}

// Changed is closed at the next change of any variable.
func (v *Vars) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

func (e *entry) copy() *api.Variable {
	out := e.Variable
	out.Items = maps.Clone(e.Items)
	if e.Lock != nil {
		lock := *e.Lock
		out.Lock = &lock
	}
	return &out
}

// List reads the variables below a prefix, in the order of their names; "*" is every
// namespace.
func (v *Vars) List(namespace, prefix string) []*api.Variable {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.expire()
	var out []*api.Variable
	for k, e := range v.entries {
		if (namespace == "*" || k.namespace == namespace) && strings.HasPrefix(k.path, prefix) {
			out = append(out, e.copy())
		}
	}
	slices.SortFunc(out, func(a, b *api.Variable) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// Index is that of the last change, at least 1.
func (v *Vars) Index() uint64 {
	v.mu.Lock()
	defer v.mu.Unlock()
	return max(1, v.index)
}
