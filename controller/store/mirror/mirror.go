package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/store"
)

const (
	entries = "entries/" // before the key of an entry
	batch   = "batch"    // the key of the batch

	readers = 8 // requests at a time
)

// ErrStale means that another process changed what this one keeps.
var ErrStale = errors.New("another controller changed the shared state")

// Mirror is a knowledge.Mirror over a store. Use New.
type Mirror struct {
	store store.Store
	root  string       // before every key
	guard func() error // nil where this process may write

	mu       sync.Mutex
	versions map[string]store.Version // of every key as it was loaded or written
	doubts   map[string][]byte        // what was written and not confirmed; nil: a deletion
	fence    store.Version            // of the batch's entry, which each new leader writes
	loaded   bool
	stale    error // nil: it is not

	told chan struct{} // closed once it is stale
}

var _ knowledge.Mirror = (*Mirror)(nil)

// New makes a Mirror below a key of the store. Guard is asked before every write.
func New(s store.Store, root string, guard func() error) *Mirror {
	return &Mirror{
		store: s, root: root + "/", guard: guard, versions: map[string]store.Version{}, doubts: map[string][]byte{},
		told: make(chan struct{}),
	}
}

// Stale is closed once the mirror is.
func (m *Mirror) Stale() <-chan struct{} { return m.told }

// Err says why the mirror is stale, nil where it is not.
func (m *Mirror) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stale
}

func (m *Mirror) path(key string) string { return m.root + entries + escape(key) }

// Finish finishes the batch of a process that died, and shuts out the batches of every
// process that led before. Only who leads may call it.
func (m *Mirror) Finish(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e, err := m.store.Get(ctx, m.root+batch)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look for a batch: %w", err)
	}
	if err == nil {
		steps, err := unpackBatch(e.Value)
		if err != nil {
			return fmt.Errorf("read the batch: %w", err)
		}
		for _, key := range slices.Sorted(maps.Keys(steps)) {
			if err := m.settle(ctx, key, steps[key]); err != nil {
				return fmt.Errorf("finish the batch: %w", err)
			}
		}
	}
	if m.fence, err = m.store.Put(ctx, m.root+batch, pack(nil), e.Version); err != nil {
		return fmt.Errorf("finish the batch: %w", err)
	}
	return nil
}

// settle makes a key what a batch says, unless somebody else wrote it since: that was
// confirmed, and stays.
func (m *Mirror) settle(ctx context.Context, key string, to step) error {
	version, _, err := m.current(ctx, key)
	if err != nil {
		return err
	}
	if version != to.Version || version == 0 && to.Value == nil {
		return nil
	}
	if to.Value == nil {
		err = m.store.Delete(ctx, m.path(key), version)
	} else {
		_, err = m.store.Put(ctx, m.path(key), pack(to.Value), version)
	}
	if errors.Is(err, store.ErrConflict) || errors.Is(err, store.ErrNotFound) {
		return nil // the process that wrote the batch lives, and did it itself
	}
	return err
}

// current is what the store holds of a key; version 0: nothing.
func (m *Mirror) current(ctx context.Context, key string) (store.Version, []byte, error) {
	e, err := m.store.Get(ctx, m.path(key))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	value, err := unpack(e.Value)
	return e.Version, value, err
}

// Load implements knowledge.Mirror. What was in doubt is no longer.
func (m *Mirror) Load(ctx context.Context, apply func(knowledge.Snapshot) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	snap := knowledge.Snapshot{Full: !m.loaded, Values: map[string][]byte{}}
	versions := map[string]store.Version{}
	var err error
	if snap.Full {
		err = m.all(ctx, &snap, versions)
	} else {
		err = m.since(ctx, &snap, versions)
	}
	if err != nil {
		return err
	}
	if err := apply(snap); err != nil {
		return err
	}
	m.versions, m.loaded = versions, true
	clear(m.doubts)
	return nil
}

func (m *Mirror) all(ctx context.Context, snap *knowledge.Snapshot, versions map[string]store.Version) error {
	list, err := m.store.List(ctx, m.root+entries)
	if err != nil {
		return err
	}
	for _, e := range list {
		key, value, err := m.entry(e)
		if err != nil {
			return err
		}
		snap.Values[key], versions[key] = value, e.Version
	}
	return nil
}

func (m *Mirror) entry(e store.Entry) (string, []byte, error) {
	key, err := unescape(strings.TrimPrefix(e.Key, m.root+entries))
	if err != nil {
		return "", nil, fmt.Errorf("entry %s: %w", e.Key, err)
	}
	value, err := unpack(e.Value)
	if err != nil {
		return "", nil, fmt.Errorf("entry %s: %w", e.Key, err)
	}
	return key, value, nil
}

// since reads only what has another version than it had.
func (m *Mirror) since(ctx context.Context, snap *knowledge.Snapshot, versions map[string]store.Version) error {
	list, err := m.store.Keys(ctx, m.root+entries)
	if err != nil {
		return err
	}
	var changed []string
	for _, e := range list {
		key, err := unescape(strings.TrimPrefix(e.Key, m.root+entries))
		if err != nil {
			return fmt.Errorf("entry %s: %w", e.Key, err)
		}
		versions[key] = e.Version
		if _, doubted := m.doubts[key]; doubted || m.versions[key] != e.Version {
			changed = append(changed, key)
		}
	}
	var mu sync.Mutex
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, key := range changed {
		group.Go(func() error {
			version, value, err := m.current(gctx, key)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			if version == 0 { // deleted meanwhile
				delete(versions, key)
				return nil
			}
			snap.Values[key], versions[key] = value, version
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	for key := range m.versions {
		if _, ok := versions[key]; !ok {
			snap.Values[key] = nil
		}
	}
	for key := range m.doubts {
		if _, ok := versions[key]; !ok {
			snap.Values[key] = nil
		}
	}
	return nil
}

// Write implements knowledge.Mirror.
func (m *Mirror) Write(ctx context.Context, changes map[string][]byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.guard(); err != nil {
		return err
	}
	switch {
	case m.stale != nil:
		return m.stale
	case !m.loaded:
		return fmt.Errorf("%w: it was not loaded", ErrStale)
	}
	keys := slices.Sorted(maps.Keys(changes))
	for _, key := range keys {
		if err := m.resolve(ctx, key); err != nil {
			return err
		}
	}
	if len(keys) == 1 {
		return m.one(ctx, keys[0], changes[keys[0]])
	}
	return m.several(ctx, keys, changes)
}

// resolve asks what became of a write that was not confirmed.
func (m *Mirror) resolve(ctx context.Context, key string) error {
	wanted, doubted := m.doubts[key]
	if !doubted {
		return nil
	}
	version, value, err := m.current(ctx, key)
	if err != nil {
		return err
	}
	known := m.versions[key]
	happened := bytes.Equal(value, wanted) && (version == 0) == (wanted == nil)
	if version != known && !happened {
		return m.spoil(fmt.Errorf("%s has version %d, this process knows %d", key, version, known))
	}
	delete(m.doubts, key)
	m.note(key, version)
	return nil
}

func (m *Mirror) note(key string, version store.Version) {
	if version == 0 {
		delete(m.versions, key)
		return
	}
	m.versions[key] = version
}

// one changes a single key, which the store does as a whole.
func (m *Mirror) one(ctx context.Context, key string, value []byte) error {
	version, known := m.versions[key]
	if value == nil && !known {
		return nil
	}
	var next store.Version
	var err error
	if value == nil {
		err = m.store.Delete(ctx, m.path(key), version)
	} else {
		next, err = m.store.Put(ctx, m.path(key), pack(value), version)
	}
	switch {
	case err == nil:
		m.note(key, next)
		return nil
	case errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrNotFound):
		return m.spoil(err)
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrClosed):
		return err // certainly nothing happened
	}
	m.doubts[key] = value
	return err
}

// several changes keys by way of the batch. Once that is written the change has
// happened, whatever becomes of this process.
func (m *Mirror) several(ctx context.Context, keys []string, changes map[string][]byte) error {
	steps := map[string]step{}
	for _, key := range keys {
		steps[key] = step{changes[key], m.versions[key]}
	}
	packed, err := packBatch(steps)
	if err != nil {
		return err
	}
	version, err := m.store.Put(ctx, m.root+batch, packed, m.fence)
	switch {
	case errors.Is(err, store.ErrInvalid), errors.Is(err, store.ErrDenied), errors.Is(err, store.ErrClosed):
		return err // certainly nothing happened
	case err != nil:
		return m.spoil(fmt.Errorf("write a batch: %w", err))
	}
	for _, key := range keys {
		if err := m.one(ctx, key, changes[key]); err != nil {
			return m.spoil(fmt.Errorf("in the middle of a batch: %w", err))
		}
	}
	if m.fence, err = m.store.Put(ctx, m.root+batch, pack(nil), version); err != nil {
		return m.spoil(fmt.Errorf("at the end of a batch: %w", err))
	}
	return nil
}

// spoil makes the mirror stale for good. The caller holds mu.
func (m *Mirror) spoil(why error) error {
	if m.stale == nil {
		m.stale = fmt.Errorf("%w: %w", ErrStale, why)
		close(m.told)
	}
	return m.stale
}
