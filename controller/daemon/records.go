package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/daemon/story"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/reconcile"
	"pitchpipe/controller/trials"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

const (
	bucketRecords = "records"
	keyPruned     = "pruned" // in bucketMarks: what pruned records counted
)

// records keeps the jobs' records in the store, and a digest of each in memory for counts
// and events, so that a scrape decodes none.
type records struct {
	store *knowledge.Store

	mu      sync.RWMutex
	digests map[driver.JobID]digest
	pruned  counts

	decoding sync.Mutex
	decoded  map[driver.JobID]decoded // of those that are looked at again and again
}

// decoded is a record with the JSON that it was decoded from. It never changes: callers get
// clones.
type decoded struct {
	raw []byte
	rec *reconcile.Record
}

// keptDecoded bounds the cache: most records are read many times between two changes, and
// grow with their jobs' epochs.
const keptDecoded = 1024

var _ reconcile.Records = (*records)(nil)

// digest is the part of one record that stays in memory.
type digest struct {
	owner            string
	submitted, over  time.Time // over: zero for a live job
	phase            reconcile.Phase
	reason           tuning.Reason
	restarts, probes int
	verdict          tuning.Verdict // of an outcome, once it is over
	net              float64        // seconds that tuning saved, below 0 lost, once it is over
	pruned           bool
	attention        bool
	events           []api.Event
	seen             **trials.View // what searches made of this record, for their service alone; nil: it has none
}

type counts struct {
	Restarts int                    `json:"restarts"`
	Probes   int                    `json:"probes"`
	Outcomes map[tuning.Verdict]int `json:"outcomes"`
	Saved    float64                `json:"saved_seconds,omitempty"` // by jobs that tuning saved something
	Lost     float64                `json:"lost_seconds,omitempty"`  // by jobs that it cost something
}

func (c *counts) add(d digest) {
	c.Restarts += d.restarts
	c.Probes += d.probes
	c.Saved += max(d.net, 0)
	c.Lost += max(-d.net, 0)
	if d.verdict != "" {
		if c.Outcomes == nil {
			c.Outcomes = map[tuning.Verdict]int{}
		}
		c.Outcomes[d.verdict]++
	}
}

func (c counts) clone() counts { c.Outcomes = maps.Clone(c.Outcomes); return c }

func loadRecords(store *knowledge.Store) (*records, error) {
	r := &records{store: store}
	return r, r.reload()
}

// reload reads all records, as after another controller wrote them.
func (r *records) reload() error {
	all, err := r.All(context.Background())
	if err != nil {
		return fmt.Errorf("read the records: %w", err)
	}
	digests := map[driver.JobID]digest{}
	for _, rec := range all {
		digests[rec.Job] = digestOf(rec)
	}
	pruned, err := r.loadPruned()
	if err != nil {
		return fmt.Errorf("read what pruned records counted: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.digests, r.pruned = digests, pruned
	return nil
}

func digestOf(rec *reconcile.Record) digest {
	d := digest{
		owner: rec.Owner, submitted: rec.Submitted, phase: rec.Phase, reason: rec.Because(), restarts: len(rec.Restarts), probes: len(rec.Probed),
		pruned: rec.Pruned, attention: rec.NeedsAttention(), seen: new(*trials.View),
	}
	if rec.Phase.Over() {
		d.over = rec.OverAt()
		if rec.Outcome != nil {
			d.verdict = rec.Outcome.Verdict
		}
		if rec.Toll != nil {
			d.net = -rec.Toll.Seconds
		}
	}
	for _, e := range rec.History {
		if text, ok := story.Sentence(rec, e); ok {
			d.events = append(d.events, api.Event{
				At: e.At, Job: string(rec.Job), Name: rec.Name, Phase: string(e.To), Reason: e.Reason, Text: text,
			})
		}
	}
	return d
}

// Load implements reconcile.Records. It does not decode bytes again that it decoded last
// time.
func (r *records) Load(_ context.Context, id driver.JobID) (*reconcile.Record, error) {
	r.decoding.Lock()
	last := r.decoded[id]
	r.decoding.Unlock()
	known := last
	err := r.store.ReadJSON(bucketRecords, string(id), func(raw []byte) error {
		if known.rec != nil && bytes.Equal(raw, known.raw) {
			return nil
		}
		known = decoded{raw: bytes.Clone(raw), rec: &reconcile.Record{}}
		return json.Unmarshal(raw, known.rec)
	})
	switch {
	case errors.Is(err, knowledge.ErrNotFound):
		return nil, reconcile.ErrNoRecord
	case err != nil:
		return nil, err
	}
	if known.rec != last.rec {
		r.keep(id, known)
	}
	return known.rec.Clone(), nil
}

func (r *records) keep(id driver.JobID, d decoded) {
	r.decoding.Lock()
	defer r.decoding.Unlock()
	if d.rec.Phase.Over() {
		delete(r.decoded, id)
		return
	}
	if r.decoded == nil || len(r.decoded) >= keptDecoded {
		r.decoded = map[driver.JobID]decoded{}
	}
	r.decoded[id] = d
}

// Save implements reconcile.Records.
func (r *records) Save(_ context.Context, rec *reconcile.Record) error {
	if err := r.store.PutJSON(bucketRecords, string(rec.Job), rec); err != nil {
		return err
	}
	d := digestOf(rec)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.digests[rec.Job] = d
	return nil
}

// All implements reconcile.Records. It decodes every record; totals and events decode none. One that
// cannot be decoded hides no other.
func (r *records) All(_ context.Context) ([]*reconcile.Record, error) {
	out, err := r.read(func(driver.JobID) bool { return true })
	if errors.Is(err, knowledge.ErrDamaged) { // Load reports it for its job
		err = nil
	}
	return out, err
}

func (r *records) read(wanted func(driver.JobID) bool) (out []*reconcile.Record, damaged error) {
	err := r.store.ForEachJSON(bucketRecords, func(key string, decode func(v any) error) error {
		if !wanted(driver.JobID(key)) {
			return nil
		}
		rec := &reconcile.Record{}
		if bad := decode(rec); bad != nil {
			damaged = errors.Join(damaged, bad)
			return nil
		}
		out = append(out, rec)
		return nil
	})
	slices.SortStableFunc(out, func(a, b *reconcile.Record) int { return a.Submitted.Compare(b.Submitted) })
	return out, errors.Join(err, damaged)
}

// events are the sentences about the jobs that the caller may see, the newest last.
func (r *records) events(may func(owner string) bool) []api.Event {
	var seen []digest
	r.mu.RLock()
	for _, d := range r.digests {
		if may(d.owner) {
			seen = append(seen, d)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(seen, func(a, b digest) int { return a.submitted.Compare(b.submitted) })
	out := []api.Event{}
	for _, d := range seen {
		out = append(out, d.events...)
	}
	slices.SortStableFunc(out, func(a, b api.Event) int { return a.At.Compare(b.At) })
	return out
}

// totals are the jobs by phase, the holds by reason, the jobs that need attention, and what
// was done to all jobs that there ever were, pruned ones included.
type totals struct {
	counts
	phases    map[reconcile.Phase]int
	holds     map[tuning.Reason]int
	attention int
}

func (r *records) totals() totals {
	r.mu.RLock()
	defer r.mu.RUnlock()
	out := totals{counts: r.pruned.clone(), phases: map[reconcile.Phase]int{}, holds: map[tuning.Reason]int{}}
	for _, d := range r.digests {
		out.phases[d.phase]++
		out.add(d)
		if d.attention {
			out.attention++
		}
		if d.reason != tuning.ReasonNone && (d.phase == reconcile.Ignored || d.phase == reconcile.Held || d.phase == reconcile.Settled) {
			out.holds[d.reason]++
		}
	}
	return out
}

// loadPruned returns the stored counts of pruned records.
func (r *records) loadPruned() (c counts, err error) {
	if err = r.store.GetJSON(bucketMarks, keyPruned, &c); errors.Is(err, knowledge.ErrNotFound) {
		err = nil
	}
	return c, err
}

// owned are the records of the jobs that the caller may see, the oldest first. It does not
// decode those of other owners.
func (r *records) owned(may func(owner string) bool) ([]*reconcile.Record, error) {
	// Take the lock before the store is read: pruning holds the lock while it writes, and
	// a writer may wait for readers.
	mine := map[driver.JobID]bool{}
	r.mu.RLock()
	for id, d := range r.digests {
		mine[id] = may(d.owner)
	}
	r.mu.RUnlock()
	out, err := r.read(func(id driver.JobID) bool { return mine[id] })
	return slices.DeleteFunc(out, func(rec *reconcile.Record) bool { return !may(rec.Owner) }), err
}

// digest returns the digest of a job's record; zero: the job has none.
func (r *records) digest(id driver.JobID) digest {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.digests[id]
}

func (r *records) owners() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var out []string
	for _, d := range r.digests {
		if d.over.IsZero() && d.owner != "" {
			out = append(out, d.owner)
		}
	}
	return out
}
