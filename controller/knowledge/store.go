package knowledge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	gen   uint64                           // counts commits that added observations
	cache map[tuning.JobKind][]Observation // nil: to be read; slices are never modified
	stale bool                             // until Adopt: the mirror has what the file has not
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
func (s *Store) Observations(kind tuning.JobKind) ([]Observation, error) {
	all, err := s.load()
	if err != nil {
		return nil, err
	}
	return all[kind], nil
}

// All returns every observation, the oldest first.
func (s *Store) All() ([]Observation, error) {
	all, err := s.load()
	if err != nil {
		return nil, err
	}
	var out []Observation
	for _, obs := range all {
		out = append(out, obs...)
	}
	slices.SortFunc(out, byTime)
	return out, nil
}

// Count is how many observations there are.
func (s *Store) Count() (int, error) {
	all, err := s.load()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, obs := range all {
		n += len(obs)
	}
	return n, nil
}

// load returns the observations by kind, from the cache where it is current.
func (s *Store) load() (map[tuning.JobKind][]Observation, error) {
	s.mu.Lock()
	cached, gen := s.cache, s.gen
	s.mu.Unlock()
	if cached != nil {
		return cached, nil
	}
	all := map[tuning.JobKind][]Observation{}
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte(bucketObservations)).ForEach(func(k, v []byte) error {
			var o Observation
			if err := json.Unmarshal(v, &o); err != nil {
				return fmt.Errorf("%w: observation %q: %w", ErrDamaged, k, err)
			}
			all[o.Kind] = append(all[o.Kind], o)
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("read observations: %w", err)
	}
	for _, obs := range all {
		slices.SortFunc(obs, byTime)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gen == gen { // else a commit came between: the next reader reads again
		s.cache = all
	}
	return all, nil
}

// committed brings the cache up to date with observations that are on disk now.
func (s *Store) committed(added []Observation) {
	if len(added) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gen++
	if s.cache == nil {
		return
	}
	next := make(map[tuning.JobKind][]Observation, len(s.cache)+1)
	maps.Copy(next, s.cache)
	for _, o := range added {
		obs := next[o.Kind]
		if slices.ContainsFunc(obs, func(x Observation) bool { return x.ID == o.ID }) {
			continue // a reader read the file between the commit and now
		}
		i, _ := slices.BinarySearchFunc(obs, o, byTime)
		next[o.Kind] = slices.Insert(slices.Clone(obs), i, o)
	}
	s.cache = next
}

// SaveModel keeps the classifier's model, a JSON document.
func (s *Store) SaveModel(model json.RawMessage) error {
	if !json.Valid(model) {
		return fmt.Errorf("save model: %w: not JSON", ErrInvalid)
	}
	_, err := s.update(func(t *Tx) error {
		t.change(keyModel, model)
		return t.tx.Bucket([]byte(bucketMeta)).Put([]byte(keyModel), model)
	})
	if err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	return nil
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
