package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"pitchpipe/controller/tuning"
)

// Errors that a caller can act on.
var (
	ErrNotFound = errors.New("not found")
	ErrLocked   = errors.New("knowledge is in use by another process")
	ErrInvalid  = errors.New("invalid entry") // what was given cannot be stored
	ErrDamaged  = errors.New("knowledge file is damaged")

	// ErrSchema means that the file was written by a newer version of this
	// program, or is not a knowledge file at all. It was not changed.
	ErrSchema = errors.New("knowledge file cannot be read by this version")

	// ErrStale means that the file does not hold what the mirror holds: nothing may be
	// done by it before Adopt.
	ErrStale = errors.New("knowledge is not that of the shared store")
)

// SchemaVersion is that of the files that this version writes.
const SchemaVersion = 1

// Top-level buckets. Those of the general area are inside of bucketRecords.
const (
	bucketMeta         = "meta"
	bucketObservations = "observations"
	bucketRecords      = "records"
	keySchema          = "schema"
	keyModel           = "model"
)

// Options are what Open may be told. The zero value is useful.
type Options struct {
	Wait   time.Duration // for another process to close the file; default one second
	Mirror Mirror        // what the file is the working copy of; nil = the file is all there is
}

// Store is the knowledge in one file.
type Store struct {
	db     *bolt.DB
	mirror Mirror      // nil = none
	shared bool        // the mirror has a schema; only Adopt and Refresh use it, one at a time
	stale  atomic.Bool // the mirror has what the file lacks

	mu    sync.Mutex
	cache *cache // nil: to be read
}

// cache holds the observations, the oldest first. What was handed out of a slice is never modified.
type cache struct {
	all   []Observation
	kinds map[tuning.JobKind][]Observation
	byID  map[string]Observation
}

func (c *cache) add(o Observation) {
	if _, known := c.byID[o.ID]; known {
		return
	}
	c.byID[o.ID] = o
	c.all = inserted(c.all, o)
	c.kinds[o.Kind] = inserted(c.kinds[o.Kind], o)
}

func inserted(obs []Observation, o Observation) []Observation {
	i, _ := slices.BinarySearchFunc(obs, o, byTime)
	if i == len(obs) {
		return append(obs, o)
	}
	return slices.Insert(slices.Clone(obs), i, o)
}

// Open opens the file, creating it where it is missing.
func Open(path string, o Options) (s *Store, err error) {
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	begin := "move it away, and a new one is begun: what was learned and recorded is lost, jobs are not"
	if o.Mirror != nil {
		begin = "move it away, and it is filled again from the shared store"
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true)) // pages that are cut off
	defer func() {
		if why := recover(); why != nil { // bbolt's answer to pages that it did not write
			s, err = nil, fmt.Errorf("open %s: %w: %v; %s", path, ErrDamaged, why, begin)
		}
	}()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: o.Wait})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return nil, fmt.Errorf("open %s: %w: %w; if it is damaged, %s", path, ErrSchema, err, begin)
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("open knowledge: %w", err)
	case err != nil:
		return nil, fmt.Errorf("open %s: %w; if it is damaged, %s", path, err, begin)
	}
	if err := prepare(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	s = &Store{db: db, mirror: o.Mirror}
	s.stale.Store(o.Mirror != nil)
	return s, nil
}

func prepare(db *bolt.DB) error {
	fresh := false
	err := db.View(func(tx *bolt.Tx) error {
		if meta := tx.Bucket([]byte(bucketMeta)); meta != nil {
			return checkSchema(meta.Get([]byte(keySchema)))
		}
		if k, _ := tx.Cursor().First(); k != nil {
			return fmt.Errorf("%w: it holds %q and no schema version", ErrSchema, k)
		}
		fresh = true
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error {
		if err := empty(tx, bucketMeta, bucketObservations, bucketRecords); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketMeta)).Put([]byte(keySchema), []byte(strconv.Itoa(SchemaVersion)))
	})
}

// empty makes buckets that are empty.
func empty(tx *bolt.Tx, buckets ...string) error {
	for _, name := range buckets {
		if err := tx.DeleteBucket([]byte(name)); err != nil && !errors.Is(err, bolterrors.ErrBucketNotFound) {
			return fmt.Errorf("clear %s: %w", name, err)
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return nil
}

func checkSchema(raw []byte) error {
	if v, err := strconv.Atoi(string(raw)); err != nil || v < 1 || v > SchemaVersion {
		return fmt.Errorf("%w: its schema version is %q, this version knows %d", ErrSchema, raw, SchemaVersion)
	}
	return nil
}

// Close waits for what is under way and closes the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close knowledge: %w", err)
	}
	return nil
}

// Observations returns those of one kind, the oldest first.
func (s *Store) Observations(kind tuning.JobKind) (obs []Observation, err error) {
	err = s.read(func(c *cache) { obs = c.kinds[kind] })
	return obs, err
}

// Observation returns the one of this ID, or ErrNotFound.
func (s *Store) Observation(id string) (o Observation, err error) {
	err = s.read(func(c *cache) { o = c.byID[id] })
	if err == nil && o.ID == "" {
		err = fmt.Errorf("observation %q: %w", id, ErrNotFound)
	}
	return o, err
}

// All returns every observation, the oldest first.
func (s *Store) All() (obs []Observation, err error) {
	err = s.read(func(c *cache) { obs = c.all })
	return obs, err
}

func (s *Store) read(fn func(c *cache)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		var obs []Observation
		err := s.db.View(func(tx *bolt.Tx) error {
			return tx.Bucket([]byte(bucketObservations)).ForEach(func(k, v []byte) error {
				var o Observation
				if err := json.Unmarshal(v, &o); err != nil {
					return fmt.Errorf("%w: observation %q: %w", ErrDamaged, k, err)
				}
				obs = append(obs, o)
				return nil
			})
		})
		if err != nil {
			return fmt.Errorf("read observations: %w", err)
		}
		slices.SortFunc(obs, byTime)
		s.cache = &cache{kinds: map[tuning.JobKind][]Observation{}, byID: map[string]Observation{}}
		for _, o := range obs {
			s.cache.add(o)
		}
	}
	fn(s.cache)
	return nil
}

// Prune deletes the observations of before the given time, and of each kind all but the newest, and
// returns how many it deleted.
func (s *Store) Prune(before time.Time, most int) (int, error) {
	all, err := s.All()
	if err != nil {
		return 0, err
	}
	var old []string
	kept := map[tuning.JobKind]int{}
	for _, o := range slices.Backward(all) {
		if kept[o.Kind]++; kept[o.Kind] > most || o.At.Before(before) {
			old = append(old, o.ID)
		}
	}
	if len(old) == 0 {
		return 0, nil
	}
	err = s.Update(func(tx *Tx) (err error) {
		for _, id := range old {
			err = errors.Join(err, tx.write(bucketObservations+"/"+id, nil))
		}
		return err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = nil
	return len(old), err
}

// LoadModel returns the classifier's model, or ErrNotFound.
func (s *Store) LoadModel() (model json.RawMessage, err error) {
	err = s.db.View(func(tx *bolt.Tx) error {
		model = bytes.Clone(tx.Bucket([]byte(bucketMeta)).Get([]byte(keyModel)))
		return nil
	})
	if err == nil && model == nil {
		err = fmt.Errorf("load model: %w", ErrNotFound)
	}
	return model, err
}

// Snapshot is the content of a Mirror, or its difference from the Snapshot before.
type Snapshot struct {
	Full   bool              // Values is the whole content
	Values map[string][]byte // nil values were deleted
}

// Mirror is the state that several controllers share. The file of each is a working copy:
// a change is written to the mirror first, and then to the file. Keys are any texts.
type Mirror interface {
	// Load calls apply with a Snapshot. Where apply fails, the next Snapshot has the same
	// changes again.
	Load(ctx context.Context, apply func(Snapshot) error) error
	// Write makes all of the changes or none; a nil value deletes. They are durable when
	// Write returns. After an error they may take effect later, before the next change.
	Write(ctx context.Context, changes map[string][]byte) error
}

// mirrorWait bounds one change of the mirror.
const mirrorWait = 20 * time.Second

// Refresh brings the file up to date with the mirror. It only reads the mirror, so that a
// standby may call it.
func (s *Store) Refresh(ctx context.Context) error {
	if s.mirror == nil {
		return nil
	}
	if err := s.mirror.Load(ctx, s.load); err != nil {
		return fmt.Errorf("load the shared knowledge: %w", err)
	}
	return nil
}

// Adopt is Refresh for a new leader: the file accepts changes from now on. An empty mirror
// gets the schema.
func (s *Store) Adopt(ctx context.Context) error {
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	s.stale.Store(false)
	if s.shared || s.mirror == nil {
		return nil
	}
	call, cancel := context.WithTimeout(ctx, mirrorWait)
	defer cancel()
	if err := s.mirror.Write(call, map[string][]byte{keySchema: []byte(strconv.Itoa(SchemaVersion))}); err != nil {
		return fmt.Errorf("begin the shared knowledge: %w", err)
	}
	s.shared = true
	return nil
}

func (s *Store) load(snap Snapshot) error {
	if raw, ok := snap.Values[keySchema]; ok || snap.Full && len(snap.Values) > 0 {
		if err := checkSchema(raw); err != nil {
			return err
		}
		s.shared = true
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if snap.Full {
			err := errors.Join(empty(tx, bucketObservations, bucketRecords), tx.Bucket([]byte(bucketMeta)).Delete([]byte(keyModel)))
			if err != nil {
				return err
			}
		}
		for key, value := range snap.Values {
			if err := apply(tx, key, value); err != nil {
				return err
			}
		}
		return nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache = nil
	return err
}
