package storetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"pitchpipe/controller/store"
)

// Memory is a store in memory, for tests of what uses one. Use NewMemory. Each of its
// Clients is a store.Store.
type Memory struct {
	mu      sync.Mutex
	version store.Version
	entries map[string]store.Entry
	leads   map[string]*memoryLease
	freed   chan struct{} // closed by the next release
}

// NewMemory is an empty one.
func NewMemory() *Memory {
	return &Memory{entries: map[string]store.Entry{}, leads: map[string]*memoryLease{}, freed: make(chan struct{})}
}

// Faults decide what becomes of a call: the first result ends it before anything
// happened, the second after it had its effect. Nil functions: nothing.
type Faults struct {
	Before, After func(op, key string) error
}

// Client is another client, under faults of its own.
func (m *Memory) Client(f Faults) store.Store { return &memoryClient{memory: m, faults: f} }

type memoryClient struct {
	memory *Memory
	faults Faults

	mu     sync.Mutex
	closed bool
	leases []*memoryLease
}

// do runs one call.
func (c *memoryClient) do(ctx context.Context, op, key string, call func() error) error {
	c.mu.Lock()
	closed := c.closed
	c.mu.Unlock()
	if closed {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.faults.Before != nil {
		if err := c.faults.Before(op, key); err != nil {
			return err
		}
	}
	c.memory.mu.Lock()
	err := call()
	c.memory.mu.Unlock()
	if err == nil && c.faults.After != nil {
		err = c.faults.After(op, key)
	}
	return err
}

// Get implements store.Store.
func (c *memoryClient) Get(ctx context.Context, key string) (out store.Entry, err error) {
	if err := store.CheckKey(key); err != nil {
		return out, err
	}
	err = c.do(ctx, "get", key, func() error {
		e, ok := c.memory.entries[key]
		if !ok {
			return fmt.Errorf("get %s: %w", key, store.ErrNotFound)
		}
		out = e
		out.Value = append([]byte{}, e.Value...)
		return nil
	})
	return out, err
}

// List implements store.Store.
func (c *memoryClient) List(ctx context.Context, prefix string) (out []store.Entry, err error) {
	err = c.do(ctx, "list", prefix, func() error {
		for _, key := range slices.Sorted(maps.Keys(c.memory.entries)) {
			if e := c.memory.entries[key]; strings.HasPrefix(key, prefix) {
				e.Value = append([]byte{}, e.Value...)
				out = append(out, e)
			}
		}
		return nil
	})
	return out, err
}

// Keys implements store.Store.
func (c *memoryClient) Keys(ctx context.Context, prefix string) ([]store.Entry, error) {
	out, err := c.List(ctx, prefix)
	for i := range out {
		out[i].Value = nil
	}
	return out, err
}

// Put implements store.Store.
func (c *memoryClient) Put(ctx context.Context, key string, value []byte, version store.Version) (next store.Version, err error) {
	if err := store.CheckEntry(key, value); err != nil {
		return 0, err
	}
	err = c.do(ctx, "put", key, func() error {
		if c.memory.entries[key].Version != version {
			return fmt.Errorf("put %s: %w", key, store.ErrConflict)
		}
		c.memory.version++
		next = c.memory.version
		c.memory.entries[key] = store.Entry{Key: key, Value: append([]byte{}, value...), Version: next}
		return nil
	})
	return next, err
}

// Delete implements store.Store.
func (c *memoryClient) Delete(ctx context.Context, key string, version store.Version) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	return c.do(ctx, "delete", key, func() error {
		e, ok := c.memory.entries[key]
		switch {
		case !ok:
			return fmt.Errorf("delete %s: %w", key, store.ErrNotFound)
		case e.Version != version:
			return fmt.Errorf("delete %s: %w", key, store.ErrConflict)
		}
		delete(c.memory.entries, key)
		return nil
	})
}

// Lead implements store.Store.
func (c *memoryClient) Lead(ctx context.Context, name, holder string) (store.Lease, error) {
	if err := store.CheckKey(name); err != nil {
		return nil, err
	}
	for {
		l := &memoryLease{memory: c.memory, name: name, holder: holder, lost: make(chan struct{})}
		var freed chan struct{}
		err := c.do(ctx, "lead", name, func() error {
			if freed = c.memory.freed; c.memory.leads[name] == nil {
				c.memory.leads[name], freed = l, nil
			}
			return nil
		})
		if err != nil {
			return nil, errors.Join(err, l.Release(ctx))
		}
		if freed == nil {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.leases = append(c.leases, l)
			return l, nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Leader implements store.Store.
func (c *memoryClient) Leader(ctx context.Context, name string) (holder string, err error) {
	if err := store.CheckKey(name); err != nil {
		return "", err
	}
	err = c.do(ctx, "leader", name, func() error {
		l := c.memory.leads[name]
		if l == nil {
			return fmt.Errorf("leader of %s: %w", name, store.ErrNotFound)
		}
		holder = l.holder
		return nil
	})
	return holder, err
}

// Close implements store.Store.
func (c *memoryClient) Close() error {
	c.mu.Lock()
	leases := c.leases
	c.closed, c.leases = true, nil
	c.mu.Unlock()
	var all []error
	for _, l := range leases {
		all = append(all, l.Release(context.Background()))
	}
	return errors.Join(all...)
}

type memoryLease struct {
	memory       *Memory
	name, holder string
	lost         chan struct{}
}

// Lost implements store.Lease.
func (l *memoryLease) Lost() <-chan struct{} { return l.lost }

// Check implements store.Lease.
func (l *memoryLease) Check(ctx context.Context) error {
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	if l.memory.leads[l.name] != l {
		return store.ErrLost
	}
	return nil
}

// Release implements store.Lease.
func (l *memoryLease) Release(context.Context) error {
	l.memory.mu.Lock()
	defer l.memory.mu.Unlock()
	if l.memory.leads[l.name] == l {
		delete(l.memory.leads, l.name)
		close(l.lost)
		close(l.memory.freed)
		l.memory.freed = make(chan struct{})
	}
	return nil
}
