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

// What is known of jobs, for those who look at lists.

func (d *Driver) stanza(id driver.JobID) (seen, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.stanzas[id]
	return s, ok
}

func (d *Driver) learned(id driver.JobID, s seen) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stanzas[id], d.news = s, true
}

// unlearn forgets what was known of jobs that the list of a namespace, or of all, does not
// show any more. It tells when the next is to be read that could not be; zero: there is none.
func (d *Driver) unlearn(namespace string, there map[driver.JobID]struct{}) (soon time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, s := range d.stanzas {
		_, ok := there[id]
		if ok && !s.again.IsZero() && (soon.IsZero() || s.again.Before(soon)) {
			soon = s.again
		}
		if !ok && (namespace == api.AllNamespacesNamespace || place(id).namespace == namespace) {
			delete(d.stanzas, id)
			d.news = true
			delete(d.snapshots, id)
			delete(d.last, id)
			delete(d.outlooks, id)
		}
	}
	return soon
}

// carries reports whether a job is one to see: it carries a stanza or is on record.
func (d *Driver) carries(id driver.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.records[id]
	return ok || d.stanzas[id].stanza
}

func (d *Driver) onRecord(id driver.JobID) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.records[id]
	return ok
}

// unfinished are the jobs on record of which something is true.
func (d *Driver) unfinished(is func(brief) bool) []driver.JobID {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []driver.JobID
	for id, r := range d.records {
		if is(r) {
			out = append(out, id)
		}
	}
	return out
}

// verifying reports whether a registration of ours is being verified.
func (d *Driver) verifying() bool {
	return len(d.unfinished(func(r brief) bool { return r.changing })) > 0
}

// learnedName is the record of what was learned of all jobs.
const learnedName = "watch"

// learnedEvery is how often that is written down at most.
const learnedEvery = 5 * time.Minute

// learnt is what is written down of it, so that a controller that is started again does
// not read every registration of the cluster.
type learnt struct {
	Version int                    `json:"version"`
	Jobs    map[driver.JobID]glyph `json:"jobs"`
}

// glyph is a seen, short.
type glyph struct {
	Index     uint64 `json:"i"`
	Submitted int64  `json:"t"`
	Stanza    bool   `json:"s,omitempty"`
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
	d.mu.Lock()
	defer d.mu.Unlock()
	for id, g := range l.Jobs {
		d.stanzas[id] = seen{index: g.Index, submitted: g.Submitted, stanza: g.Stanza}
	}
}

// keepLearned writes down what was learned. It can be learned again: nobody fails for it.
func (d *Driver) keepLearned(ctx context.Context) {
	d.mu.Lock()
	if closing := d.life.Err() != nil; !d.news || !closing && time.Since(d.kept) < learnedEvery {
		d.mu.Unlock()
		return
	}
	l := learnt{Version: recordVersion, Jobs: make(map[driver.JobID]glyph, len(d.stanzas))}
	for id, s := range d.stanzas {
		if s.again.IsZero() {
			l.Jobs[id] = glyph{s.index, s.submitted, s.stanza}
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
