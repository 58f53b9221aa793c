package move

import (
	"context"
	"maps"
	"time"

	"pitchpipe/driver"
)

// Phase is how far an intent got.
type Phase string

// The phases, in order.
const (
	Asking  Phase = "asking"   // the job is to be asked to save, or was
	Ending  Phase = "stopping" // it said that it saved, or is discarded: it is to be ended
	Stopped Phase = "stopped"  // it left and waits, or waited when the intent came
	Changed Phase = "changed"  // its next attempt is to have the new settings, or has them
)

// Moving is the intent in progress.
type Moving struct {
	Intent driver.Intent `json:"intent"`
	Phase  Phase         `json:"phase"`
	Asked  time.Time     `json:"asked,omitzero"`      // when the intent came; its grace counts from here
	Sent   bool          `json:"signalled,omitempty"` // the job was asked to save, for certain
	Ended  bool          `json:"requeued,omitempty"`  // the scheduler took the order to end it
	Queued bool          `json:"queued,omitempty"`    // nothing ran when the intent came
	Left   time.Time     `json:"left,omitzero"`       // when the attempt was seen to have left
}

// late reports whether the job has had its time to save.
func (m *Moving) late(now time.Time) bool {
	cp := m.Intent.Checkpoint
	return cp != nil && !m.Intent.Discard && now.Sub(m.Asked) >= cp.Grace
}

// Record is what is kept of the intents of one job. Drivers embed it in theirs.
type Record struct {
	Moving *Moving                    `json:"moving,omitempty"`
	Closed map[string]driver.StepKind `json:"closed,omitempty"` // intents that ended, and how
	Why    map[string]string          `json:"why,omitempty"`
}

// Close ends the intent in progress, if there is one.
func (r *Record) Close(kind driver.StepKind, why string) {
	if r.Moving == nil {
		return
	}
	r.Note(r.Moving.Intent.ID, kind, why)
	r.Moving = nil
}

// Note writes down how an intent ended.
func (r *Record) Note(intent string, kind driver.StepKind, why string) {
	if r.Closed == nil {
		r.Closed = map[string]driver.StepKind{}
	}
	r.Closed[intent] = kind
	if why == "" {
		return
	}
	if r.Why == nil {
		r.Why = map[string]string{}
	}
	r.Why[intent] = why
}

// Overdue is how an intent ends that no Advance has come for until then; empty: it goes on.
// A job that left runs on under the settings before; one that was asked to save is not
// waited for after its grace.
func Overdue(m *Moving, waits bool, until, now time.Time) driver.StepKind {
	switch {
	case now.Before(until):
	case waits:
		return driver.StepSuperseded
	case m.Phase == Asking && m.late(now):
		return driver.StepAbandoned
	}
	return ""
}

// Clone copies the record.
func (r Record) Clone() Record {
	if r.Moving != nil {
		m := *r.Moving
		r.Moving = &m
	}
	r.Closed, r.Why = maps.Clone(r.Closed), maps.Clone(r.Why)
	return r
}

// Store keeps the records of a driver under names, each durable when Save returns. Its
// methods are safe for concurrent use. A durable.Folder is one.
type Store interface {
	Load(ctx context.Context, name string) ([]byte, error) // fs.ErrNotExist where there is none
	Save(ctx context.Context, name string, record []byte) error
	Delete(ctx context.Context, name string) error // nothing where there is none
	List(ctx context.Context) ([]string, error)
}
