package nomad

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"time"

	"github.com/hashicorp/nomad/api"

	"pitchpipe/driver"
)

// cached is what is kept of a job between calls.
type cached struct {
	record   *brief      // what the journal has of it, in short; nil: nothing
	seen     seen        // whether it carries a stanza
	snapshot *snapshot   // nil: something was done to it since it was read
	last     *driver.Job // as it was last read, for lists that show one that cannot be read
}

// seen is whether a registration carries a stanza. The zero value: it was not read.
type seen struct {
	Index     uint64 `json:"i"` // of the registration
	Submitted int64  `json:"t"` // when, in nanoseconds: indexes of a cluster that is set up anew come again
	Stanza    bool   `json:"s,omitempty"`

	again time.Time // it could not be read: when to ask again; zero: it was read
}

// of reports whether it is about the registration that a list shows.
func (s seen) of(stub *api.JobListStub) bool {
	return s.Index == stub.JobModifyIndex && s.Submitted == stub.SubmitTime
}

func (d *Driver) peek(id driver.JobID) cached {
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.jobs[id]; c != nil {
		return *c
	}
	return cached{}
}

func (d *Driver) keep(id driver.JobID, change func(*cached)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.jobs[id]
	if c == nil {
		c = &cached{}
		d.jobs[id] = c
	}
	change(c)
}

func (d *Driver) learned(id driver.JobID, s seen) {
	d.keep(id, func(c *cached) { c.seen, d.news = s, true })
}

// unlearn forgets what was known of jobs that the list of a namespace, or of all, does not
// show any more.
func (d *Driver) unlearn(namespace string, there map[driver.JobID]struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, c := range d.jobs {
		if _, ok := there[id]; ok || namespace != api.AllNamespacesNamespace && place(id).namespace != namespace {
			continue
		}
		if *c, d.news = (cached{record: c.record}), true; c.record == nil {
			delete(d.jobs, id)
		}
	}
}

// which are the jobs on record of which something is true.
func (d *Driver) which(is func(brief) bool) []driver.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []driver.JobID
	for id, c := range d.jobs {
		if c.record != nil && is(*c.record) {
			out = append(out, id)
		}
	}
	return out
}

func unfinished(r brief) bool { return !r.ended }

// verifying reports whether a registration of ours is being verified.
func verifying(r brief) bool { return r.changing }

// learnedName is the record of what was learned of all jobs.
const learnedName = "watch"

// learnedEvery is how often that is written down at most.
const learnedEvery = 5 * time.Minute

// learnt is what is written down, so that a controller that is started again does not read
// every registration of the cluster.
type learnt struct {
	Version int                   `json:"version"`
	Jobs    map[driver.JobID]seen `json:"jobs"`
}

// relearn reads what was written down. Where that cannot be done everything is read anew.
func (d *Driver) relearn(ctx context.Context) {
	data, err := d.cfg.Journal.Load(ctx, learnedName)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var l learnt
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	if err != nil || l.Version != recordVersion {
		d.cfg.Logger.Warn("what was learned of the jobs cannot be read, they are read anew", "version", l.Version, "error", err)
		return
	}
	for id, s := range l.Jobs {
		d.keep(id, func(c *cached) { c.seen = s })
	}
}

// keepLearned writes down what was learned. It can be learned again: nothing fails for it.
func (d *Driver) keepLearned(ctx context.Context) {
	d.mu.Lock()
	if closing := d.life.Err() != nil; !d.news || !closing && time.Since(d.kept) < learnedEvery {
		d.mu.Unlock()
		return
	}
	l := learnt{Version: recordVersion, Jobs: map[driver.JobID]seen{}}
	for id, c := range d.jobs {
		if s := c.seen; s.again.IsZero() && s != (seen{}) {
			l.Jobs[id] = s
		}
	}
	d.news, d.kept = false, time.Now()
	d.mu.Unlock()
	data, err := json.Marshal(l)
	if err == nil {
		err = d.cfg.Journal.Save(ctx, learnedName, data)
	}
	if err != nil && !errors.Is(err, ErrNotLeading) {
		d.cfg.Logger.Warn("what was learned of the jobs is not written down", "error", err)
	}
}
