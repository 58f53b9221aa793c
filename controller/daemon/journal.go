package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"pitchpipe/controller/store"
	"pitchpipe/driver/nomad"
)

// Journal is the journal of the driver for Nomad in the shared store, so that who takes
// over finds what the one before noted of its jobs. Only who leads writes to it.
func (s *Seat) Journal() nomad.Journal {
	return &journal{store: s.store, leads: s.leads, versions: map[string]store.Version{}}
}

// journal implements nomad.Journal. A record is written where it has the version that
// was last loaded or saved here: what the driver wrote it from.
type journal struct {
	store store.Store
	leads func() error

	mu       sync.Mutex
	versions map[string]store.Version
}

func journalKey(name string) string { return rootJournal + "/" + name }

func (j *journal) seen(name string, v store.Version) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if v == 0 {
		delete(j.versions, name)
		return
	}
	j.versions[name] = v
}

func (j *journal) version(name string) store.Version {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.versions[name]
}

// Load implements nomad.Journal.
func (j *journal) Load(ctx context.Context, name string) ([]byte, error) {
	e, err := j.store.Get(ctx, journalKey(name))
	if errors.Is(err, store.ErrNotFound) {
		j.seen(name, 0)
		return nil, fmt.Errorf("journal: %s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j.seen(name, e.Version)
	return e.Value, nil
}

// Save implements nomad.Journal. A record that another controller wrote meanwhile is
// not replaced: it has to be loaded first.
func (j *journal) Save(ctx context.Context, name string, record []byte) error {
	if err := j.leads(); err != nil {
		return fmt.Errorf("journal: %s: %w: %w", name, nomad.ErrNotLeading, err)
	}
	v, err := j.store.Put(ctx, journalKey(name), record, j.version(name))
	if err != nil {
		j.seen(name, 0)
		return fmt.Errorf("journal: %w", err)
	}
	j.seen(name, v)
	return nil
}

// Delete implements nomad.Journal. What is not there is deleted already.
func (j *journal) Delete(ctx context.Context, name string) error {
	if err := j.leads(); err != nil {
		return fmt.Errorf("journal: %s: %w: %w", name, nomad.ErrNotLeading, err)
	}
	e, err := j.store.Get(ctx, journalKey(name))
	if err == nil {
		err = j.store.Delete(ctx, journalKey(name), e.Version)
	}
	j.seen(name, 0)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// List implements nomad.Journal.
func (j *journal) List(ctx context.Context) ([]string, error) {
	entries, err := j.store.Keys(ctx, journalKey(""))
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, strings.TrimPrefix(e.Key, journalKey("")))
	}
	return out, nil
}
