package local

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitchpipe/driver"
	"pitchpipe/driver/durable"
	"pitchpipe/driver/jobfile"
	"pitchpipe/driver/local/supervise"
	"pitchpipe/driver/move"
)

// recordVersion is the shape of job.json.
const recordVersion = 2

// record is everything known of one job: the content of job.json.
type record struct {
	Version int        `json:"version"`
	Number  int64      `json:"number"`
	Job     driver.Job `json:"job"`

	File     file              `json:"file"`
	Dir      string            `json:"dir"`    // working directory
	Output   string            `json:"output"` // absolute
	OwnOut   bool              `json:"own_output"`
	Env      map[string]string `json:"env,omitempty"` // Spec.Env
	Progress driver.Progress   `json:"progress"`
	User     *supervise.User   `json:"user,omitempty"`
	Home     string            `json:"home,omitempty"` // of User

	// The attempt that runs.
	Launch int   `json:"launch,omitempty"`
	CPUs   []int `json:"cpus,omitempty"`

	Adapted map[string]string `json:"adapted,omitempty"` // settings that the file got while the job ran
	Adapts  int               `json:"adapts,omitempty"`  // how often

	Next   next  `json:"next"`             // the attempt that is queued
	Offset int64 `json:"offset,omitempty"` // length of the output when it was asked to save
	move.Record

	// SavedExits are exit statuses that mean "saved" in the present attempt,
	// because an intent that has been abandoned meanwhile asked for it.
	SavedExits []int `json:"saved_exits,omitempty"`

	Cancel bool `json:"cancel,omitempty"` // its end was asked for
}

// file is what is needed of the job file to run it.
type file struct {
	Format      jobfile.Format         `json:"format"`
	Argv        []string               `json:"argv,omitempty"`
	Env         map[string]string      `json:"env,omitempty"`
	Meta        map[string]string      `json:"meta,omitempty"`
	Interpreter []string               `json:"interpreter,omitempty"` // of a script
	Output      string                 `json:"output,omitempty"`      // pattern
	Append      bool                   `json:"append,omitempty"`      // the first attempt keeps what the output has
	Fixed       map[string]jobfile.Pos `json:"fixed,omitempty"`       // variables that a script sets whatever its environment says
	NoRequeue   bool                   `json:"no_requeue,omitempty"`
	Live        bool                   `json:"live,omitempty"` // its stanza names a live knob
	Dir         string                 `json:"dir,omitempty"`  // working directory, where it is to be interpolated
}

// next is what the queued attempt will be.
type next struct {
	Change driver.Change `json:"change"`
	Cause  driver.Cause  `json:"cause"`
	Intent string        `json:"intent,omitempty"`
	Note   string        `json:"note,omitempty"`
}

// want is what the job's next or present attempt takes of the machine.
func (r *record) want(c driver.Change) driver.Room { return r.Job.Resources.Under(c).Room() }

func (r *record) limit(c driver.Change) time.Duration { return r.Job.Resources.Under(c).TimeLimit }

// attempt is the present attempt's entry, nil before the first.
func (r *record) attempt() *driver.Attempt {
	if len(r.Job.Attempts) == 0 {
		return nil
	}
	return &r.Job.Attempts[len(r.Job.Attempts)-1]
}

// clone copies the record so that a change of it can fail without a trace.
func (r *record) clone() *record {
	c := *r
	c.Job = r.Job.Clone()
	c.Record = r.Record.Clone()
	c.SavedExits = slices.Clone(r.SavedExits)
	c.CPUs = slices.Clone(r.CPUs)
	return &c
}

// store is the state directory.
type store struct{ dir string }

func (s store) jobs() string                      { return filepath.Join(s.dir, "jobs") }
func (s store) requests() string                  { return filepath.Join(s.dir, "requests") }
func (s store) job(id driver.JobID) string        { return filepath.Join(s.jobs(), string(id)) }
func (s store) script(id driver.JobID) string     { return filepath.Join(s.job(id), "script") }
func (s store) settings(id driver.JobID) string   { return filepath.Join(s.job(id), "settings.json") }
func (s store) nextFile() string                  { return filepath.Join(s.dir, "next") }
func (s store) recordFile(id driver.JobID) string { return filepath.Join(s.job(id), "job.json") }

func (s store) claim(id driver.RequestID) string {
	return filepath.Join(s.requests(), driver.Digest(string(id)))
}

// launch is the directory of the present launch of the present attempt.
func (s store) launch(r *record) string {
	return filepath.Join(s.job(r.Job.ID), "attempts", fmt.Sprintf("%d-%d", r.Job.Attempt, r.Launch))
}

// write makes the record durable.
func (s store) write(r *record) error {
	return durable.WriteJSON(s.recordFile(r.Job.ID), r, 0o600)
}

// prepare makes the directories. Jobs of other users pass through them, and read
// nothing.
func (s store) prepare() error {
	// The outer ones first: each with its own mode.
	for _, dir := range []string{s.dir, s.jobs()} {
		if err := durable.MkdirAll(dir, 0o711); err != nil {
			return err
		}
	}
	return durable.MkdirAll(s.requests(), 0o700)
}

// load reads every record, oldest first. A directory without a record is a Start
// that a crash interrupted; its request is repeated or never was answered. A record that
// cannot be decoded hides no other: its job is not seen, and keeps its number and its request.
func (s store) load(log *slog.Logger) ([]*record, error) {
	entries, err := os.ReadDir(s.jobs())
	if err != nil {
		return nil, fmt.Errorf("reading the state: %w", err)
	}
	var out []*record
	for _, e := range entries {
		r := &record{}
		path := s.recordFile(driver.JobID(e.Name()))
		if _, err := os.Stat(path); os.IsNotExist(err) {
			continue
		}
		err := durable.ReadJSON(path, r)
		if _, unread := errors.AsType[*fs.PathError](err); unread {
			return nil, err
		}
		if err != nil {
			log.Error("the record of a job cannot be read; what runs of the job is no longer followed", "error", err)
			continue
		}
		if r.Version != recordVersion {
			return nil, fmt.Errorf("%s: version %d, want %d", path, r.Version, recordVersion)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *record) int { return int(a.Number - b.Number) })
	return out, nil
}

// number returns the number of the next job and makes durable that it is taken. It is above those of all jobs
// that are there, of whom the file knows nothing where it was lost or restored.
func (s store) number() (int64, error) {
	n := int64(1)
	if err := durable.ReadJSON(s.nextFile(), &n); err != nil && !errors.Is(err, os.ErrNotExist) {
		return 0, err
	}
	jobs, err := os.ReadDir(s.jobs())
	if err != nil {
		return 0, fmt.Errorf("reading the state: %w", err)
	}
	for _, job := range jobs {
		used, _ := strconv.ParseInt(job.Name()[strings.LastIndexByte(job.Name(), '-')+1:], 10, 64) // 0: no job's
		n = max(n, used+1)
	}
	return n, durable.Write(s.nextFile(), []byte(strconv.FormatInt(n+1, 10)), 0o600)
}
