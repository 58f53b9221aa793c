package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
	"pitchpipe/driver/move"
	"pitchpipe/driver/nomad/spec"
	"pitchpipe/driver/nomad/view"
)

// recordVersion is that of the records.
const recordVersion = 2

// from is where the job was when the intent in progress came.
type from struct {
	Alloc     string    `json:"alloc,omitempty"`    // that ran
	Since     int64     `json:"since,omitempty"`    // its last event, by its node's clock
	Offset    int64     `json:"offset,omitempty"`   // of its output
	Node      int64     `json:"node,omitempty"`     // when the client of its node had registered last
	Grows     string    `json:"grows,omitempty"`    // its node, where it is to have more than it has
	Back      time.Time `json:"back,omitzero"`      // when it was seen that the client has registered again since
	Before    uint64    `json:"before"`             // the job's version
	Newest    uint64    `json:"newest,omitempty"`   // creation of the latest allocation
	InPlace   bool      `json:"turn,omitempty"`     // to be restarted in place by the job's variable, if that can be
	Wrote     time.Time `json:"wrote,omitzero"`     // when the variable was written first; zero: the change is registered
	Restarted time.Time `json:"restarted,omitzero"` // when it was restarted from here last, whose template had not done so
}

// late is an allocation that was asked to save: if it left for that reason, we must
// make it run again.
type late struct {
	Alloc string `json:"alloc"`
	Since int64  `json:"since"`
	Exit  int    `json:"exit"`
}

// expected is the version that the next registration makes.
type expected struct {
	Version uint64    `json:"version"`
	Mark    spec.Mark `json:"mark"`
}

// record is what is known of one job besides what Nomad says.
type record struct {
	Version   int               `json:"version"`
	Job       driver.JobID      `json:"job"`
	Index     uint64            `json:"index,omitempty"` // of the job's creation; 0: not seen yet
	First     uint64            `json:"first,omitempty"` // version with which its owner last registered it
	Request   driver.RequestID  `json:"request,omitempty"`
	Filename  string            `json:"filename,omitempty"`
	Source    []byte            `json:"source,omitempty"`
	Variables map[string]string `json:"variables,omitempty"`
	Submitted time.Time         `json:"submitted,omitzero"`

	Own        *api.Job           `json:"own,omitempty"`
	Submission *api.JobSubmission `json:"submission,omitempty"` // of the owner

	Expect   *expected            `json:"expect,omitempty"`
	Back     uint64               `json:"back,omitempty"` // version with which a change was taken back, all of it
	Ours     map[uint64]spec.Mark `json:"ours,omitempty"` // versions that were registered here
	From     from                 `json:"from,omitzero"`
	Late     *late                `json:"late,omitempty"`
	Attempts []view.Known         `json:"attempts,omitempty"`
	Restarts []view.Restart       `json:"turns,omitempty"`    // restarts in place of its allocations, with other variables
	Items    map[string]string    `json:"items,omitempty"`    // of the job's variable, as they were last written here
	Ignored  []string             `json:"ignored,omitempty"`  // allocations that ran finished work again
	Replaced string               `json:"replaced,omitempty"` // the allocation that the last change was of
	Finished bool                 `json:"finished,omitempty"` // its work is done; what runs of it is to be stopped
	Last     *driver.Job          `json:"last,omitempty"`     // how it ended
	Missing  time.Time            `json:"missing,omitzero"`   // since when Nomad is known not to know it

	move.Record

	saved []byte // as the journal has it
}

func recordName(id driver.JobID) string { return "job-" + driver.Digest(string(id))[:40] }

// load reads a job's record, nil where there is none.
func (d *Driver) load(ctx context.Context, id driver.JobID) (*record, error) {
	r, err := d.loadName(ctx, recordName(id))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // most jobs have none
	}
	if err != nil {
		return nil, fmt.Errorf("record of job %s: %w", id, err)
	}
	return r, nil
}

// loadName reads a record by its name in the journal.
func (d *Driver) loadName(ctx context.Context, name string) (*record, error) {
	data, err := d.cfg.Journal.Load(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	r := &record{saved: data}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion || recordName(r.Job) != name {
		return nil, fmt.Errorf("version %d of job %q is not known: %w", r.Version, r.Job, driver.ErrInvalid)
	}
	return r, nil
}

// save makes a record durable. What the journal has already is not written again.
func (d *Driver) save(ctx context.Context, r *record) error {
	r.Version = recordVersion
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("record of job %s: %w", r.Job, err)
	}
	if string(data) == string(r.saved) {
		return nil
	}
	if err := d.cfg.Journal.Save(ctx, recordName(r.Job), data); err != nil {
		return fmt.Errorf("record of job %s: %w: %w", r.Job, driver.ErrTransient, err)
	}
	r.saved = data
	d.remember(r)
	return nil
}

// inPlace reports whether the intent in progress is carried out by a write to the job's
// variable: its template restarts the task.
func (r *record) inPlace() bool {
	return r.Moving != nil && r.Moving.Phase == move.Changed && !r.From.Wrote.IsZero()
}

// over notes what outlives the intent in progress, which ends so.
func (r *record) over(kind driver.StepKind) {
	if r.Moving == nil {
		return
	}
	inPlace := r.inPlace()
	if kind == driver.StepStarted && r.Moving.Phase == move.Changed && !inPlace {
		r.Replaced = r.From.Alloc
	}
	if cp := r.Moving.Intent.Checkpoint; r.Moving.Sent && cp != nil && cp.Exit != 0 && (!inPlace || kind != driver.StepStarted) {
		r.Late = &late{Alloc: r.From.Alloc, Since: r.From.Since, Exit: cp.Exit}
	}
}

// end ends the intent in progress.
func (r *record) end(kind driver.StepKind, why string) {
	r.over(kind)
	r.Close(kind, why)
}

// brief is what is asked of all records at a time.
type brief struct {
	request  driver.RequestID
	ended    bool
	changing bool   // a registration of ours is to be verified
	grows    string // the node on which it is being moved to more than it has
}

func (r *record) brief() brief {
	b := brief{request: r.Request, ended: r.Last != nil}
	if m := r.Moving; m != nil {
		b.changing, b.grows = m.Phase == move.Changed, r.From.Grows
	}
	return b
}
