package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"pitchpipe/controller/store"
)

// Target is a store to test.
type Target struct {
	// New makes a store that is empty and ends with the test.
	New func(t *testing.T) Backend
	// Silence says why this store knows no silent leaders; empty: it does.
	NoSilence string
	// Small is for stores where each call takes long: fewer rounds.
	Small bool
}

// Backend is one store, of which there may be several clients.
type Backend interface {
	// Client opens another one. The suite closes it.
	Client(t *testing.T) Client
}

// Client is one client of a store.
type Client struct {
	store.Store
	// Silence lets nothing of this client reach the store any more, until the function
	// that it returns is called. Nil where the target has NoSilence.
	Silence func() (restore func())
}

// patience is for what takes as long as it takes: only failures wait for it.
const patience = 3 * time.Minute

// Run runs the suite.
func Run(t *testing.T, target Target) {
	t.Helper()
	for name, test := range map[string]func(t *testing.T, target Target){
		"what was put is got":                                       putIsGot,
		"what is not there is not found":                            notFound,
		"values of every size and every byte come back":             everyValue,
		"a value that grows and shrinks comes back":                 growing,
		"a put against another version is a conflict":               putConflicts,
		"a delete against another version is a conflict":            deleteConflicts,
		"versions only grow, over a deletion too":                   versionsGrow,
		"keys are listed in order and by prefix":                    listed,
		"a key beside one that it is the beginning of is another":   nestedKeys,
		"keys that are none are refused and nothing is stored":      badKeys,
		"values beyond the limit are refused and nothing is stored": tooLarge,
		"every key that is one can be used":                         oddKeys,
		"of concurrent writers nobody loses an increment":           increments,
		"of concurrent creators one succeeds":                       creators,
		"readers beside writers see whole values":                   wholeValues,
		"what one client wrote another sees, and after closing":     durable,
		"nothing works after the close":                             closed,
		"an ended context ends every call":                          endedContext,
		"any sequence of calls does what a map would":               likeAMap,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, target)
		})
	}
	t.Run("lead", func(t *testing.T) {
		t.Parallel()
		runLead(t, target)
	})
}

// open makes a store with one client.
func open(t *testing.T, target Target) store.Store {
	t.Helper()
	return client(t, target.New(t)).Store
}

// client opens a client that is closed with the test.
func client(t *testing.T, b Backend) Client {
	t.Helper()
	c := b.Client(t)
	t.Cleanup(func() { _ = c.Close() }) // a test may have closed it
	return c
}

func put(t *testing.T, s store.Store, key string, value []byte, version store.Version) store.Version {
	t.Helper()
	v, err := s.Put(t.Context(), key, value, version)
	if err != nil {
		t.Fatalf("put %s at version %d: %v", key, version, err)
	}
	return v
}

func get(t *testing.T, s store.Store, key string) store.Entry {
	t.Helper()
	e, err := s.Get(t.Context(), key)
	if err != nil {
		t.Fatalf("get %s: %v", key, err)
	}
	return e
}

// fails fails the test where an error is not the one that is due.
func fails(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: %v, want %v", what, err, want)
	}
}

// short is a context for what must not take long and is stopped where it does.
func short(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
