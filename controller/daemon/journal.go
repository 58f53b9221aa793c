package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"pitchpipe/controller/store"
	"pitchpipe/driver/nomad"
)

// Journal is the journal of the driver for Nomad in the shared state, so that the next
// leader finds what this one noted of its jobs. Only the leader writes to it, and it
// replaces a record only in the version that the driver last loaded or saved.
func (c *Candidate) Journal() nomad.Journal { return journal{c} }

type journal struct{ *Candidate }

func inJournal(err error) error {
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Load implements nomad.Journal.
func (j journal) Load(ctx context.Context, name string) ([]byte, error) {
	if err := j.replica.Refresh(ctx); err != nil {
		return nil, inJournal(err)
	}
	record, err := j.replica.Record(name)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	return record, inJournal(err)
}

// Save implements nomad.Journal.
func (j journal) Save(ctx context.Context, name string, record []byte) error {
	return j.set(ctx, name, append([]byte{}, record...))
}

// Delete implements nomad.Journal.
func (j journal) Delete(ctx context.Context, name string) error { return j.set(ctx, name, nil) }

func (j journal) set(ctx context.Context, name string, record []byte) error {
	if err := j.leads(); err != nil {
		return inJournal(fmt.Errorf("%s: %w: %w", name, nomad.ErrNotLeading, err))
	}
	return inJournal(j.replica.SetRecord(ctx, name, record))
}

// List implements nomad.Journal.
func (j journal) List(ctx context.Context) ([]string, error) {
	err := inJournal(j.replica.Refresh(ctx))
	return j.replica.Records(), err
}
