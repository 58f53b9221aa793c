package local

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/output"
)

// Logs returns the job's output from byte offset on, as far as it is written.
func (d *Driver) Logs(_ context.Context, id driver.JobID, offset int64) (io.ReadCloser, error) {
	d.mu.Lock()
	r, err := d.find(id)
	d.mu.Unlock()
	if err != nil {
		return nil, fmt.Errorf("logs: %w", err)
	}
	if offset < 0 {
		return nil, fmt.Errorf("logs: offset %d: %w", offset, driver.ErrInvalid)
	}
	if len(r.Job.Attempts) == 0 { // there is no output yet, whatever lies there
		return io.NopCloser(bytes.NewReader(nil)), nil
	}
	out, err := d.outputs.From(r.Output, r.uid(), offset)
	if err != nil {
		return nil, fmt.Errorf("logs: job %s: %w", id, err)
	}
	return out, nil
}

// uid is whose the output must be where this process may read more than the job's user.
func (r *record) uid() int {
	if r.User == nil {
		return output.AnyUser
	}
	return int(r.User.UID)
}

// heard is what the output of a running job says that an intent asks about.
type heard struct {
	intent string
	size   int64 // of the output where the intent is new, else -1
	saved  bool  // since the job was asked to save
	err    error
}

// hear looks at the output for an Advance, which calls it before it takes the lock: a
// file of one job that hangs must not hold up the others.
func (d *Driver) hear(id driver.JobID, intent string) heard {
	d.mu.Lock()
	r := d.jobs[id] // never changed in place
	d.mu.Unlock()
	h := heard{intent: intent, size: -1}
	switch {
	case r == nil || r.Job.State != driver.Running:
	case r.Moving == nil:
		h.size, h.err = d.outputs.Size(r.Output, r.uid())
	case r.Moving.Intent.ID == intent && r.Moving.Phase == move.Asking && r.Moving.Intent.Checkpoint.Done != "":
		var data []byte
		if data, h.err = d.outputs.Tail(r.Output, r.uid(), r.Offset); h.err == nil {
			h.saved, h.err = output.Says(data, r.Moving.Intent.Checkpoint.Done)
		}
	}
	return h
}
