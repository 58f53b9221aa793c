package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"pitchpipe/controller/tuning"
)

// SchemaVersion is that of the files that this version writes.
const SchemaVersion = 1

// Top-level buckets of the file. Those of the general area are inside of
// bucketRecords, so that no name of theirs can collide.
const (
	bucketMeta         = "meta"
	bucketObservations = "observations"
	bucketRecords      = "records"
	keySchema          = "schema"
	keyModel           = "model"
)

// Options are what Open may be told. The zero value is useful.
type Options struct {
	HalfLife time.Duration    // of what was observed; default DefaultHalfLife
	Now      func() time.Time // default time.Now
	Wait     time.Duration    // for another process to close the file; default one second
	Mirror   Mirror           // what the file is the working copy of; nil = the file is all there is
}

// Store is the knowledge in one file.
type Store struct {
	db       *bolt.DB
	halfLife time.Duration
	now      func() time.Time
	mirror   Mirror // nil = none
	shared   bool   // the mirror has a schema; only Adopt and Refresh use it, one at a time

	mu    sync.Mutex
	cache *cache // nil: to be read
	stale bool   // until Adopt: the mirror has what the file has not
}

// cache holds the observations in memory, the oldest first. What was handed out of a
// slice is never modified: a slice grows at its end, or is copied.
type cache struct {
	all   []Observation
	kinds map[tuning.JobKind][]Observation
	at    map[string]int // of an ID in all
}

func (c *cache) add(o Observation) {
	if _, known := c.at[o.ID]; known {
		return
	}
	var i int
	c.all, i = inserted(c.all, o)
	for ; i < len(c.all); i++ {
		c.at[c.all[i].ID] = i
	}
	c.kinds[o.Kind], _ = inserted(c.kinds[o.Kind], o)
}

// inserted adds an observation at its place, which is mostly the end.
func inserted(obs []Observation, o Observation) ([]Observation, int) {
	n := len(obs)
	if n == 0 || byTime(obs[n-1], o) < 0 {
		return append(obs, o), n
	}
	i, _ := slices.BinarySearchFunc(obs, o, byTime)
	return slices.Insert(slices.Clone(obs), i, o), i
}

// Open opens the file, creating it where it is missing. A file of a newer schema
// is ErrSchema, one that another process has open is ErrLocked.
func Open(path string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.HalfLife <= 0 {
		o.HalfLife = DefaultHalfLife
	}
	if o.Wait <= 0 {
		o.Wait = time.Second
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: o.Wait})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("open %s: %w", path, ErrLocked)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return nil, fmt.Errorf("open %s: %w: %w", path, ErrSchema, err)
	case err != nil:
		return nil, fmt.Errorf("open knowledge: %w", err)
	}
	if err := prepare(db); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), db.Close())
	}
	return &Store{db: db, halfLife: o.HalfLife, now: o.Now, mirror: o.Mirror, stale: o.Mirror != nil}, nil
}

// prepare checks the schema of a file, or writes it into a new one.
func prepare(db *bolt.DB) error {
	fresh := false
	err := db.View(func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		if meta == nil {
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("%w: it holds %q and no schema version", ErrSchema, k)
			}
			fresh = true
			return nil
		}
		v, err := strconv.Atoi(string(meta.Get([]byte(keySchema))))
		switch {
		case err != nil || v < 1:
			return fmt.Errorf("%w: its schema version is %q", ErrSchema, meta.Get([]byte(keySchema)))
		case v > SchemaVersion:
			return fmt.Errorf("%w: its schema version is %d, this version knows %d", ErrSchema, v, SchemaVersion)
		}
		return nil
	})
	if err != nil || !fresh {
		return err
	}
	return db.Update(func(tx *bolt.Tx) error {
		meta, err := tx.CreateBucket([]byte(bucketMeta))
		if err != nil {
			return fmt.Errorf("create %s: %w", bucketMeta, err)
		}
		for _, name := range []string{bucketObservations, bucketRecords} {
			if _, err := tx.CreateBucket([]byte(name)); err != nil {
				return fmt.Errorf("create %s: %w", name, err)
			}
		}
		return meta.Put([]byte(keySchema), []byte(strconv.Itoa(SchemaVersion)))
	})
}

// Close waits for what is under way and closes the file.
func (s *Store) Close() error {
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close knowledge: %w", err)
	}
	return nil
}

// Put keeps an observation. Repeated with the same ID it changes nothing and
// returns false.
func (s *Store) Put(o Observation) (added bool, err error) {
	err = s.Update(func(tx *Tx) error {
		added, err = tx.Put(o)
		return err
	})
	return added && err == nil, err
}

// Observations returns those of one kind, the oldest first.
func (s *Store) Observations(kind tuning.JobKind) (obs []Observation, err error) {
	err = s.read(func(c *cache) { obs = c.kinds[kind] })
	return obs, err
}

// Observation returns the one of this ID, or ErrNotFound.
func (s *Store) Observation(id string) (o Observation, err error) {
	known := false
	err = s.read(func(c *cache) {
		var i int
		if i, known = c.at[id]; known {
			o = c.all[i]
		}
	})
	if err == nil && !known {
		err = fmt.Errorf("observation %q: %w", id, ErrNotFound)
	}
	return o, err
}

// All returns every observation, the oldest first.
func (s *Store) All() (obs []Observation, err error) {
	err = s.read(func(c *cache) { obs = c.all })
	return obs, err
}

// Count is how many observations there are.
func (s *Store) Count() (int, error) {
	obs, err := s.All()
	return len(obs), err
}

// read hands the observations to fn, from the cache where there is one.
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
		s.cache = &cache{kinds: map[tuning.JobKind][]Observation{}, at: map[string]int{}}
		for _, o := range obs {
			s.cache.add(o)
		}
	}
	fn(s.cache)
	return nil
}

// committed brings the cache up to date with observations that are on disk now. A reader
// may have read them from there already.
func (s *Store) committed(added []Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache == nil {
		return
	}
	for _, o := range added {
		s.cache.add(o)
	}
}

// SaveModel keeps the classifier's model, a JSON document, in a change of its own; see
// Tx.SaveModel.
func (s *Store) SaveModel(model json.RawMessage) error {
	return s.Update(func(tx *Tx) error { return tx.SaveModel(model) })
}

// LoadModel returns the classifier's model, or ErrNotFound.
func (s *Store) LoadModel() (json.RawMessage, error) {
	var model json.RawMessage
	err := s.db.View(func(tx *bolt.Tx) error {
		v := tx.Bucket([]byte(bucketMeta)).Get([]byte(keyModel))
		if v == nil {
			return ErrNotFound
		}
		model = bytes.Clone(v)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	return model, nil
}

// Backup writes a copy of the file as it is at this moment; writers are not kept
// waiting. Opened, the copy is a store of its own.
func (s *Store) Backup(ctx context.Context, w io.Writer) error {
	err := s.db.View(func(tx *bolt.Tx) error {
		_, err := tx.WriteTo(writerFunc(func(p []byte) (int, error) {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			return w.Write(p)
		}))
		return err
	})
	if err != nil {
		return fmt.Errorf("back up knowledge: %w", errors.Join(err, ctx.Err()))
	}
	return nil
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// Check reads the whole file and returns all that is wrong with it, joined.
func (s *Store) Check() error {
	var found []error
	err := s.db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() {
			found = append(found, fmt.Errorf("%w: %w", ErrDamaged, err))
		}
		return tx.Bucket([]byte(bucketObservations)).ForEach(func(k, v []byte) error {
			var o Observation
			if err := json.Unmarshal(v, &o); err != nil {
				found = append(found, fmt.Errorf("%w: observation %q: %w", ErrDamaged, k, err))
			} else if o.ID != string(k) {
				found = append(found, fmt.Errorf("%w: observation %q is stored as %q", ErrDamaged, o.ID, k))
			}
			return nil
		})
	})
	return errors.Join(append(found, err)...)
}
