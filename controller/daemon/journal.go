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

// journal implements nomad.Journal.
type journal struct{ *Candidate }

// Load implements nomad.Journal.
func (j journal) Load(ctx context.Context, name string) ([]byte, error) {
	if err := j.replica.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	record, err := j.replica.Record(name)
	if errors.Is(err, store.ErrNotFound) {
		err = fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return record, nil
}

// Save implements nomad.Journal.
func (j journal) Save(ctx context.Context, name string, record []byte) error {
	return j.set(ctx, name, append([]byte{}, record...))
}

// Delete implements nomad.Journal.
func (j journal) Delete(ctx context.Context, name string) error { return j.set(ctx, name, nil) }

func (j journal) set(ctx context.Context, name string, record []byte) error {
	err := j.leads()
	if err != nil {
		err = fmt.Errorf("%s: %w: %w", name, nomad.ErrNotLeading, err)
	} else {
		err = j.replica.SetRecord(ctx, name, record)
	}
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// List implements nomad.Journal.
func (j journal) List(ctx context.Context) ([]string, error) {
	if err := j.replica.Refresh(ctx); err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	return j.replica.Records(), nil
}
