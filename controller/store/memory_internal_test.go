package store

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// memory is a KV in memory. Its clients fail as a test wants.
type memory struct {
	mu      sync.Mutex
	version Version
	entries map[string]Entry
}

func newMemory() *memory { return &memory{entries: map[string]Entry{}} }

// client is one way to a memory. Before ends a call before it has an effect, after loses
// the answer.
type client struct {
	*memory

	before, after func(op, key string) error
}

var _ KV = client{}

func (c client) do(ctx context.Context, op, key string, call func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.before != nil {
		if err := c.before(op, key); err != nil {
			return err
		}
	}
	c.mu.Lock()
	err := call()
	c.mu.Unlock()
	if err == nil && c.after != nil {
		err = c.after(op, key)
	}
	return err
}

// Limit is small, so that every test has blobs of several parts.
func (c client) Limit() int { return 1500 }

func (c client) Get(ctx context.Context, key string) (out Entry, err error) {
	err = c.do(ctx, "get", key, func() error {
		e, ok := c.entries[key]
		if !ok {
			return ErrNotFound
		}
		out = e
		return nil
	})
	return out, err
}

func (c client) List(ctx context.Context, prefix string) (out []Entry, err error) {
	err = c.do(ctx, "list", prefix, func() error {
		for _, key := range slices.Sorted(maps.Keys(c.entries)) {
			if e := c.entries[key]; strings.HasPrefix(key, prefix) {
				out = append(out, Entry{Key: key, Version: e.Version})
			}
		}
		return nil
	})
	return out, err
}

func (c client) Put(ctx context.Context, key string, value []byte, version Version) (next Version, err error) {
	err = c.do(ctx, "put", key, func() error {
		switch {
		case len(value) == 0 || len(value) > c.Limit():
			return fmt.Errorf("%w: %d bytes", ErrInvalid, len(value))
		case c.entries[key].Version != version:
			return ErrConflict
		}
		c.version++
		next = c.version
		c.entries[key] = Entry{Key: key, Value: bytes.Clone(value), Version: next}
		return nil
	})
	return next, err
}

func (c client) Delete(ctx context.Context, key string) error {
	return c.do(ctx, "delete", key, func() error {
		delete(c.entries, key)
		return nil
	})
}

func (c client) Lock(string) Lock { panic("the tests of the lock have another") }

func (c client) Leader(context.Context) (string, error) { panic("the tests of the lock have another") }

// envLead makes this test binary a leader at a file, which waits to be killed.
const envLead = "PITCHPIPE_TEST_STORE_LEAD"

func TestMain(m *testing.M) {
	if path := os.Getenv(envLead); path != "" {
		leadUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

const patience = 3 * time.Minute // only failures wait for it

func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
