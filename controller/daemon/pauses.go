package daemon

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"pitchpipe/controller/daemon/api"
	"pitchpipe/controller/knowledge"
	"pitchpipe/controller/tuning"
	"pitchpipe/driver"
)

// The scopes of a pause.
const (
	ScopeCluster   = "cluster"
	ScopePartition = "partition"
	ScopeUser      = "user"
	ScopeJob       = "job"
)

// Scopes lists the scopes of a pause, widest first.
func Scopes() []string { return []string{ScopeCluster, ScopePartition, ScopeUser, ScopeJob} }

const (
	bucketPauses = "pauses"
	bucketOff    = "off"
	bucketMarks  = "marks"
	keyCleared   = "cleared"
)

// byTuner is who pauses when the tuner stops itself.
const byTuner = "tuner"

// pauses keeps which jobs must not be changed. Reads are from memory, so that a pause is in
// force when it is written.
type pauses struct {
	store *knowledge.Store
	mu    sync.RWMutex
	on    map[string]api.Pause
	off   map[string]string // job id or requestKey → see submitted
	// cleared is when the tuner last paused itself, or when that pause was lifted.
	cleared time.Time
}

func pauseKey(scope, name string) string { return scope + "/" + name }

func loadPauses(store *knowledge.Store) (*pauses, error) {
	p := &pauses{store: store}
	return p, p.reload()
}

func readAll[T any](store *knowledge.Store, bucket string) (map[string]T, error) {
	out := map[string]T{}
	err := store.ForEachJSON(bucket, func(key string, decode func(v any) error) error {
		var v T
		err := decode(&v)
		out[key] = v
		return err
	})
	return out, err
}

// reload reads everything, as after another controller wrote it.
func (p *pauses) reload() error {
	on, err1 := readAll[api.Pause](p.store, bucketPauses)
	off, err2 := readAll[string](p.store, bucketOff)
	var cleared time.Time
	err3 := p.store.GetJSON(bucketMarks, keyCleared, &cleared)
	if errors.Is(err3, knowledge.ErrNotFound) {
		err3 = nil
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("read what is paused: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on, p.off, p.cleared = on, off, cleared
	return nil
}

// automatic reports whether the tuner paused itself. A user of its name cannot pause the
// cluster.
func automatic(x api.Pause) bool { return x.By == byTuner && x.Scope == ScopeCluster }

// clearedAt implements reconcile.Services.Cleared.
func (p *pauses) clearedAt() time.Time {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.cleared
}

// clear restarts the count of regressions, in force even where it cannot be written.
// The caller holds mu.
func (p *pauses) clear(at time.Time) error {
	p.cleared = at
	return p.store.PutJSON(bucketMarks, keyCleared, at)
}

func (p *pauses) put(x api.Pause) error {
	key := pauseKey(x.Scope, x.Name)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on[key] = x // in force even where it cannot be written: the safe side
	err := p.store.PutJSON(bucketPauses, key, x)
	if automatic(x) {
		err = errors.Join(err, p.clear(x.At))
	}
	return err
}

func (p *pauses) drop(scope, name string) error {
	key := pauseKey(scope, name)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.store.Delete(bucketPauses, key); err != nil {
		return err
	}
	lifted := p.on[key]
	delete(p.on, key)
	if automatic(lifted) {
		return p.clear(time.Now())
	}
	return nil
}

// list returns the pauses, widest scope first, then by name.
func (p *pauses) list() []api.Pause {
	p.mu.RLock()
	defer p.mu.RUnlock()
	out := slices.AppendSeq(make([]api.Pause, 0, len(p.on)), maps.Values(p.on))
	slices.SortFunc(out, func(a, b api.Pause) int {
		return cmp.Or(cmp.Compare(slices.Index(Scopes(), a.Scope), slices.Index(Scopes(), b.Scope)), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func (p *pauses) get(scope, name string) (api.Pause, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	x, ok := p.on[pauseKey(scope, name)]
	return x, ok
}

// requestKey names a job that may not exist yet. No job has it as id.
func requestKey(id driver.RequestID) string { return "request/" + string(id) }

// submitted is when the job of an entry of off was submitted: a later job with its id is another.
// Zero: an older entry, which has who asked and counts for every job with the id.
func submitted(entry string) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, entry)
	return at
}

func (p *pauses) switchOff(id string, submitted time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.off[id] = submitted.Format(time.RFC3339Nano)
	return p.store.PutJSON(bucketOff, id, p.off[id])
}

// isOff reports whether tuning is off for a job id or a requestKey.
func (p *pauses) isOff(key string) bool {
	p.mu.RLock()
	defer p.mu.RUnlock()
	_, off := p.off[key]
	return off
}

// switchOn undoes switchOff, as for a job whose submission failed.
func (p *pauses) switchOn(key string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.store.Delete(bucketOff, key); err != nil {
		return err
	}
	delete(p.off, key)
	return nil
}

// prune drops what is said of jobs that the scheduler does not know and that were submitted, or
// paused, before the given time. Known has ids and requestKeys.
func (p *pauses) prune(before time.Time, known map[string]bool) error {
	p.mu.RLock()
	off := maps.Clone(p.off)
	p.mu.RUnlock()
	var err error
	for key, entry := range off {
		if !known[key] && submitted(entry).Before(before) {
			err = errors.Join(err, p.switchOn(key))
		}
	}
	for _, x := range p.list() {
		if x.Scope == ScopeJob && !known[x.Name] && x.At.Before(before) {
			err = errors.Join(err, p.drop(x.Scope, x.Name))
		}
	}
	return err
}

// gate returns why the job may not be changed now, or ReasonNone. Its Submitted is that of its
// first submission: some schedulers set it again when they requeue a job. Zero is unknown.
func (p *pauses) gate(job driver.Job) tuning.Reason {
	if job.Off {
		return tuning.ReasonOff
	}
	p.mu.RLock()
	defer p.mu.RUnlock()
	entry, off := p.off[string(job.ID)]
	if at := submitted(entry); off && (at.IsZero() || !job.Submitted.After(at)) {
		return tuning.ReasonOff
	}
	if _, off := p.off[requestKey(job.Request)]; off {
		return tuning.ReasonOff
	}
	for _, key := range []string{
		pauseKey(ScopeCluster, ""), pauseKey(ScopePartition, job.Partition), pauseKey(ScopeUser, job.Owner),
		pauseKey(ScopeJob, string(job.ID)),
	} {
		if _, on := p.on[key]; on {
			return tuning.ReasonPaused
		}
	}
	return tuning.ReasonNone
}
