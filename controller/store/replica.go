package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"pitchpipe/controller/knowledge"
)

const (
	slots    = 256         // of the log
	callWait = time.Minute // for what a caller gave no deadline
	attempts = 20          // to read a log that is being written
	readers  = 8           // requests at a time
)

// recordPrefix begins the keys of records, which Load leaves out.
const recordPrefix = "driver/"

// value is a packed value and the entry that wrote it. An empty one is deleted: it stays until a
// segment begins with the first entry.
type value struct {
	Packed []byte
	Seq    uint64
}

// Replica is one controller's copy of the shared state. Only the leader writes to it, from Begin
// on. It is safe for concurrent use.
type Replica struct {
	kv    KV
	guard func() error // nil where this process may write
	ring  uint64       // slots of the log

	mu       sync.Mutex
	seq      uint64             // the last entry that state has
	versions map[string]Version // of the slots that were read or written
	base     uint64             // the last entry that lists segments
	segments []segment
	state    map[string]value
	seen     map[string]uint64 // the entries that wrote the records, as this process last read or wrote them
	changed  map[string]bool   // keys since Load handed them over; nil: all
	writer   string            // makes the entries of this process unlike all others; empty: it does not lead
	pending  *entry            // whose answer got lost
	read     time.Time         // last time
	stale    error             // why this process must not write any more
	depose   func(error)       // called once with stale
}

var _ knowledge.Mirror = (*Replica)(nil)

// NewReplica asks nothing of the store yet. Guard is asked before every write.
func NewReplica(kv KV, guard func() error) *Replica {
	return &Replica{kv: kv, guard: guard, ring: slots, versions: map[string]Version{}, state: map[string]value{}, seen: map[string]uint64{}}
}

// Err is ErrStale with its cause where another controller wrote to the log, else nil.
func (r *Replica) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stale
}

func (r *Replica) begin(ctx context.Context) (context.Context, func()) {
	call, cancel := context.WithTimeout(ctx, callWait)
	r.mu.Lock()
	return call, func() { r.mu.Unlock(); cancel() }
}

func each(ctx context.Context, n int, fn func(ctx context.Context, i int) error) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for i := range n {
		group.Go(func() error { return fn(gctx, i) })
	}
	return group.Wait()
}

// Refresh reads what the leader wrote, once a second at most.
func (r *Replica) Refresh(ctx context.Context) error {
	ctx, end := r.begin(ctx)
	defer end()
	if time.Since(r.read) < time.Second {
		return nil
	}
	return r.refresh(ctx)
}

// A process that writes knows what it wrote, and must not learn the versions of a leader that took
// over.
func (r *Replica) refresh(ctx context.Context) error {
	if r.writer != "" {
		return nil
	}
	for range attempts {
		if whole, err := r.catchUp(ctx); err != nil || whole {
			return err
		}
	}
	return fmt.Errorf("%w: the log has gaps, or it is written faster than it is read", ErrUnavailable)
}

// catchUp reports false where the leader wrote meanwhile, so that what was read has gaps.
func (r *Replica) catchUp(ctx context.Context) (bool, error) {
	listed, err := r.kv.List(ctx, "log/")
	if err != nil {
		return false, fmt.Errorf("list the log: %w", err)
	}
	listed = slices.DeleteFunc(listed, func(e Entry) bool { return r.versions[e.Key] == e.Version })
	entries := make([]entry, len(listed))
	err = each(ctx, len(listed), func(ctx context.Context, i int) (err error) {
		if listed[i].Value == nil {
			if listed[i], err = r.kv.Get(ctx, listed[i].Key); err != nil {
				return fmt.Errorf("read the log: %w", err)
			}
		}
		return decode(listed[i].Value, &entries[i])
	})
	if err != nil {
		return false, err
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.Seq, b.Seq) })
	for _, e := range slices.Backward(entries) {
		if len(e.Segments) > 0 && e.Seq > r.seq {
			if whole, err := r.loadSegments(ctx, e); err != nil || !whole {
				return false, err
			}
			break
		}
	}
	for _, e := range entries {
		if e.Seq <= r.seq {
			continue
		}
		if e.Seq != r.seq+1 {
			return false, nil
		}
		if e.Blob != nil {
			if err := r.readBlob(ctx, *e.Blob, &e.Changes); err != nil {
				return false, ignore(err, ErrNotFound) // a segment has it since
			}
		}
		r.apply(e)
	}
	for _, e := range listed {
		r.versions[e.Key] = e.Version
	}
	r.read = time.Now()
	return true, nil
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}

func (r *Replica) apply(e entry) {
	for key, packed := range e.Changes {
		r.set(key, value{packed, e.Seq})
	}
	r.seq = e.Seq
	if len(e.Segments) > 0 {
		r.base, r.segments = e.Seq, e.Segments
	}
}

func (r *Replica) set(key string, v value) {
	r.state[key] = v
	if r.changed != nil {
		r.changed[key] = true
	}
}

// Load implements knowledge.Mirror.
func (r *Replica) Load(ctx context.Context, apply func(knowledge.Snapshot) error) error {
	ctx, end := r.begin(ctx)
	defer end()
	if err := r.refresh(ctx); err != nil {
		return err
	}
	snap := knowledge.Snapshot{Full: r.changed == nil, Values: map[string][]byte{}}
	keys := maps.Keys(r.changed)
	if snap.Full {
		keys = maps.Keys(r.state)
	}
	for key := range keys {
		v := r.state[key]
		if strings.HasPrefix(key, recordPrefix) || snap.Full && len(v.Packed) == 0 {
			continue
		}
		var err error
		if snap.Values[key], err = unpack(v.Packed); err != nil {
			return fmt.Errorf("value of %s: %w", key, err)
		}
	}
	if err := apply(snap); err != nil {
		return err
	}
	r.changed = map[string]bool{}
	return nil
}

// Begin makes this process, which has the leader lock, the only one that can write. Depose is
// called when another controller is found to write.
func (r *Replica) Begin(ctx context.Context, depose func(error)) error {
	ctx, end := r.begin(ctx)
	defer end()
	r.depose = depose
	var err error
	for range attempts {
		r.writer, r.pending = "", nil
		if err = r.refresh(ctx); err != nil {
			break
		}
		r.writer = rand.Text()
		if r.full() {
			err = r.compact(ctx)
		} else {
			err = r.append(ctx, entry{})
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrConflict) { // else the leader before wrote meanwhile
			break
		}
	}
	r.writer = ""
	return fmt.Errorf("begin to write the shared state: %w", err)
}

// Write implements knowledge.Mirror. A change whose answer got lost is finished before the next
// one.
func (r *Replica) Write(ctx context.Context, changes map[string][]byte) error {
	ctx, end := r.begin(ctx)
	defer end()
	return r.write(ctx, changes)
}

func (r *Replica) write(ctx context.Context, changes map[string][]byte) error {
	if err := r.guard(); err != nil {
		return err
	}
	switch {
	case r.stale != nil:
		return r.stale
	case r.writer == "":
		return fmt.Errorf("%w: it was not read", ErrStale)
	}
	packed := make(map[string][]byte, len(changes))
	for key, v := range changes {
		packed[key] = pack(v)
	}
	var err error
	if r.pending != nil {
		err = r.put(ctx, *r.pending)
	}
	if err == nil && r.full() {
		err = r.compact(ctx)
	}
	if err == nil {
		err = r.append(ctx, entry{Changes: packed})
	}
	if errors.Is(err, ErrConflict) {
		r.stale = fmt.Errorf("%w: %w", ErrStale, err)
		r.depose(r.stale)
		return r.stale
	}
	return err
}

// An entry that is too large for its slot lies in a blob.
func (r *Replica) append(ctx context.Context, e entry) (err error) {
	e.Seq, e.Writer = r.seq+1, r.writer
	if e.raw, err = encode(e); err != nil {
		return err
	}
	if len(e.raw) > r.kv.Limit() && len(e.Segments) == 0 { // segments are few
		blob, err := r.writeBlob(ctx, e.Changes)
		if err != nil {
			return err
		}
		if e.raw, err = encode(entry{Seq: e.Seq, Writer: e.Writer, Blob: &blob}); err != nil {
			return err
		}
	}
	return r.put(ctx, e)
}

// The slot may have the entry from an earlier attempt.
func (r *Replica) put(ctx context.Context, e entry) error {
	key := fmt.Sprintf("log/%03d", e.Seq%r.ring)
	version, err := r.kv.Put(ctx, key, e.raw, r.versions[key])
	if errors.Is(err, ErrConflict) {
		there, getErr := r.kv.Get(ctx, key)
		switch {
		case getErr != nil:
			err = getErr
		case bytes.Equal(there.Value, e.raw):
			version, err = there.Version, nil
		}
	}
	switch {
	case err == nil:
		r.versions[key], r.pending = version, nil
		r.apply(e)
		return nil
	case errors.Is(err, ErrConflict), errors.Is(err, ErrInvalid), errors.Is(err, ErrDenied):
	default:
		r.pending = &e
	}
	return fmt.Errorf("write entry %d of the log: %w", e.Seq, err)
}

// Record returns a small record that Load leaves out, or ErrNotFound.
func (r *Replica) Record(name string) ([]byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	packed, seq := r.record(name)
	if r.seen[name] = seq; seq == 0 {
		return nil, ErrNotFound
	}
	return unpack(packed)
}

func (r *Replica) record(name string) ([]byte, uint64) {
	v := r.state[recordPrefix+name]
	if len(v.Packed) == 0 {
		return nil, 0
	}
	return v.Packed, v.Seq
}

// SetRecord replaces a record in the version that this process last read or wrote, else it returns
// ErrConflict. A nil record is deleted, no matter who wrote it.
func (r *Replica) SetRecord(ctx context.Context, name string, record []byte) error {
	ctx, end := r.begin(ctx)
	defer end()
	if _, seq := r.record(name); record != nil && seq != r.seen[name] {
		return fmt.Errorf("record %s: %w", name, ErrConflict)
	}
	if err := r.write(ctx, map[string][]byte{recordPrefix + name: record}); err != nil {
		return err
	}
	_, r.seen[name] = r.record(name)
	return nil
}

// Records lists the names of the records.
func (r *Replica) Records() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for key, v := range r.state {
		if name, ok := strings.CutPrefix(key, recordPrefix); ok && len(v.Packed) > 0 {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
