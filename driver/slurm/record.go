package slurm

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/move"
	"pitchpipe/driver/slurm/slurmctl"
)

const recordVersion = 2

// Request is a claimed request id.
type Request struct {
	Version int              `json:"version"`
	ID      driver.RequestID `json:"id"`
	Marker  string           `json:"marker"`        // is in the job's comment
	Tried   time.Time        `json:"tried"`         // when sbatch was last called
	Job     driver.JobID     `json:"job,omitempty"` // empty: not known to exist

	// Answer is what sbatch printed, NUMBER;CLUSTER, where it named a cluster: a job of
	// another one is not found by looking here.
	Answer string `json:"answer,omitempty"`
}

// From is what Slurm had of the job when the intent in progress came.
type From struct {
	Restarts int       `json:"restarts"`         // that it counted
	Before   Size      `json:"before"`           // that the job had
	Offset   int64     `json:"offset,omitempty"` // of the output
	Saves    int       `json:"saves,omitempty"`  // that the job had reported
	Since    time.Time `json:"since,omitzero"`   // when that was, by the clock of its node
	Split    bool      `json:"split,omitempty"`  // the array's task certainly has its own number by now
	Memory   bool      `json:"memory,omitempty"` // the attempt was killed for memory, and what it was killed under is taken back
}

// Size is what Slurm can change of a job.
type Size = slurmctl.Size

// Next is what the next attempt differs in, and why.
type Next struct {
	Number int           `json:"number"` // of the attempt
	Change driver.Change `json:"change"`
	Intent string        `json:"intent"`
	Size   Size          `json:"size"`             // that it must have, else it is not this
	Before *Size         `json:"before,omitempty"` // that the job had when the intent came

	At        time.Time `json:"at,omitzero"`         // when Slurm got it
	Memory    bool      `json:"memory,omitempty"`    // the attempt before was killed for memory
	Overruled bool      `json:"overruled,omitempty"` // its owner has changed part of it since
}

// Mark is the place in a job's output where an attempt begins.
type Mark struct {
	Attempt int    `json:"attempt"`
	Offset  int64  `json:"offset"`
	Tail    []byte `json:"tail,omitempty"` // what precedes it, to know the place again
}

// Late is a job that was asked to save, whether its intent was carried out since or
// given up: where it is seen to have left for that reason, it is ours to let go.
type Late struct {
	Restarts int `json:"restarts"` // that Slurm counts then
	Exit     int `json:"exit"`     // status with which it leaves
}

// Listening is the listener that was started last.
type Listening struct {
	Attempt int       `json:"attempt"`
	At      time.Time `json:"at"`
}

// Record is what is known of one job besides what Slurm says.
type Record struct {
	Version   int               `json:"version"`
	Job       driver.JobID      `json:"job"`
	Number    string            `json:"number,omitempty"` // of an array's task, once it has its own
	User      string            `json:"user,omitempty"`
	Request   driver.RequestID  `json:"request,omitempty"`
	Filename  string            `json:"filename,omitempty"`
	Script    []byte            `json:"script"`
	Env       map[string]string `json:"env,omitempty"` // that the submission set
	Submitted time.Time         `json:"submitted"`     // first
	Own       Size              `json:"own"`           // what the owner asked for
	Set       *Size             `json:"set,omitempty"` // that it had when it was last seen, our changes included
	Late      *Late             `json:"late,omitempty"`
	Delayed   bool              `json:"delayed,omitempty"` // its wait is ours to end
	Held      bool              `json:"held,omitempty"`    // its owner or the site held it while it ran, and still does
	Repairs   bool              `json:"repairs,omitempty"` // a kill for memory under the last change that was planned may be taken back: no one depended on the job
	Node      string            `json:"node,omitempty"`    // where it ran when the last intent came
	Next      *Next             `json:"next,omitempty"`
	Listening *Listening        `json:"listening,omitempty"`
	Adapted   map[string]string `json:"adapted,omitempty"` // live settings that Adapt added
	Adapts    int               `json:"adapts,omitempty"`  // how often it did
	Output    *Mark             `json:"output,omitempty"`  // of the latest attempt that an intent brought about
	Attempts  []driver.Attempt  `json:"attempts,omitempty"`
	From      From              `json:"from,omitzero"`
	Last      *driver.Job       `json:"last,omitempty"`  // how it ended
	Missed    time.Time         `json:"missed,omitzero"` // when slurmctld was first seen not to know it, while the accounting says that it has not ended
	move.Record
}

// latest is the last attempt; zero: none has begun.
func (r *Record) latest() driver.Attempt {
	if n := len(r.Attempts); n > 0 {
		return r.Attempts[n-1]
	}
	return driver.Attempt{}
}

// Journal is the state directory: the records of jobs in jobs/ID.json, what the tasks of an
// array have in common in arrays/ID.json, and requests/HASH.
type Journal struct {
	Records
	Arrays Records
	dir    string
}

// OpenJournal makes the directory where it is missing.
func OpenJournal(dir string) (Journal, error) {
	err := durable.MkdirAll(filepath.Join(dir, "requests"), 0o700)
	jobs, jerr := durable.OpenFolder(filepath.Join(dir, "jobs"))
	arrays, aerr := durable.OpenFolder(filepath.Join(dir, "arrays"))
	if err := errors.Join(err, jerr, aerr); err != nil {
		return Journal{}, fmt.Errorf("journal: %w", err)
	}
	return Journal{Records{jobs}, Records{arrays}, dir}, nil
}

func (j Journal) request(id driver.RequestID) string {
	return filepath.Join(j.dir, "requests", driver.Digest(string(id)))
}

// MarkerKey is how the markers of all requests begin.
const MarkerKey = "pitchpipe-request="

// Marker is what names a request in a job's comment. It names the journal too,
// since two controllers may use the same request id.
func (j Journal) Marker(id driver.RequestID) string {
	return MarkerKey + driver.Digest(j.dir + "\x00" + string(id))[:24]
}

// Request returns what is known of a request id. Its error is fs.ErrNotExist where
// it is new.
func (j Journal) Request(id driver.RequestID) (Request, error) {
	var r Request
	err := durable.ReadJSON(j.request(id), &r)
	if err == nil && r.Version != recordVersion {
		err = fmt.Errorf("request %s: version %d of the journal is not known: %w", id, r.Version, driver.ErrInvalid)
	}
	return r, err
}

// Keep replaces what is known of a request.
func (j Journal) Keep(r Request) error {
	r.Version = recordVersion
	return durable.WriteJSON(j.request(r.ID), r, 0o600)
}

// Free forgets a request that certainly made no job.
func (j Journal) Free(id driver.RequestID) error {
	if err := os.Remove(j.request(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("journal: freeing a request: %w", err)
	}
	return durable.SyncDir(filepath.Join(j.dir, "requests"))
}

// Records are those of jobs, or of arrays.
type Records struct{ store durable.Folder }

// Read returns a record. Its error is fs.ErrNotExist where there is none.
func (f Records) Read(id driver.JobID) (*Record, error) {
	var r Record
	if err := f.store.LoadJSON(string(id), &r); err != nil {
		return nil, err
	}
	if r.Version != recordVersion || r.Job != id {
		return nil, fmt.Errorf("record of job %s: version %d of job %q is not known: %w", id, r.Version, r.Job, driver.ErrInvalid)
	}
	return &r, nil
}

// Find is Read; nil without an error is not an answer, so the second result reports
// whether there is a record.
func (f Records) Find(id driver.JobID) (*Record, bool, error) {
	r, err := f.Read(id)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", driver.ErrTransient, err)
	}
	return r, true, nil
}

// Write replaces a record.
func (f Records) Write(r *Record) error {
	r.Version = recordVersion
	return f.store.SaveJSON(string(r.Job), r)
}

// List returns the ids of all records.
func (f Records) List() ([]driver.JobID, error) {
	names, err := f.store.List(context.Background())
	out := make([]driver.JobID, len(names))
	for i, name := range names {
		out[i] = driver.JobID(name)
	}
	return out, err
}

// Forget removes a record.
func (f Records) Forget(id driver.JobID) error {
	return f.store.Delete(context.Background(), string(id))
}
