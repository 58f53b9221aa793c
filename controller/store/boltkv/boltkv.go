package boltkv

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	bolt "go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"pitchpipe/controller/store"
	"pitchpipe/controller/store/lease"
)

// Buckets and keys of the file.
const (
	bucketMeta   = "shared"
	bucketValues = "values"
	keySchema    = "schema"
	schema       = "1"
)

// patience is how long a call without a deadline waits for other processes.
const patience = 30 * time.Second

// Store is one client of the file. Use Open.
type Store struct {
	path   string
	mu     sync.Mutex // one call at a time: the lock of the file is for other clients
	leases lease.Set
}

var _ store.Store = (*Store)(nil)

// Open makes the file where it is missing. A file of another kind is ErrInvalid and
// not changed.
func Open(ctx context.Context, path string) (*Store, error) {
	s := &Store{path: path}
	err := s.with(ctx, false, func(tx *bolt.Tx) error {
		meta := tx.Bucket([]byte(bucketMeta))
		if meta == nil {
			if k, _ := tx.Cursor().First(); k != nil {
				return fmt.Errorf("%w: it holds %q and is no shared store", store.ErrInvalid, k)
			}
			return create(tx)
		}
		if v := meta.Get([]byte(keySchema)); string(v) != schema {
			return fmt.Errorf("%w: its schema is %q, this version knows %s", store.ErrInvalid, v, schema)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return s, nil
}

func create(tx *bolt.Tx) error {
	meta, err := tx.CreateBucket([]byte(bucketMeta))
	if err != nil {
		return err
	}
	if _, err := tx.CreateBucket([]byte(bucketValues)); err != nil {
		return err
	}
	return meta.Put([]byte(keySchema), []byte(schema))
}

// with runs fn in one transaction on the file.
func (s *Store) with(ctx context.Context, readOnly bool, fn func(tx *bolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases.Closed() {
		return store.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	wait := patience
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, max(time.Until(deadline), time.Millisecond))
	}
	db, err := bolt.Open(s.path, 0o600, &bolt.Options{Timeout: wait, ReadOnly: readOnly})
	switch {
	case errors.Is(err, bolterrors.ErrTimeout):
		return fmt.Errorf("%w: other processes keep %s", store.ErrUnavailable, s.path)
	case errors.Is(err, bolterrors.ErrInvalid), errors.Is(err, bolterrors.ErrVersionMismatch), errors.Is(err, bolterrors.ErrChecksum):
		return fmt.Errorf("%w: %w", store.ErrInvalid, err)
	case err != nil:
		return fmt.Errorf("%w: %w", store.ErrUnavailable, err)
	}
	run := db.Update
	if readOnly {
		run = db.View
	}
	return errors.Join(run(fn), db.Close())
}

// decode takes apart what is stored: eight bytes of version, then the value.
func decode(key, raw []byte) (store.Entry, error) {
	if len(raw) < 8 {
		return store.Entry{}, fmt.Errorf("%w: %q has no version", store.ErrDamaged, key)
	}
	return store.Entry{
		Key: string(key), Value: append([]byte{}, raw[8:]...), Version: store.Version(binary.BigEndian.Uint64(raw)),
	}, nil
}

// Get implements store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	if err := store.CheckKey(key); err != nil {
		return store.Entry{}, err
	}
	var out store.Entry
	err := s.with(ctx, true, func(tx *bolt.Tx) (err error) {
		raw := tx.Bucket([]byte(bucketValues)).Get([]byte(key))
		if raw == nil {
			return store.ErrNotFound
		}
		out, err = decode([]byte(key), raw)
		return err
	})
	if err != nil {
		return store.Entry{}, fmt.Errorf("get %s: %w", key, err)
	}
	return out, nil
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	var out []store.Entry
	err := s.with(ctx, true, func(tx *bolt.Tx) error {
		c := tx.Bucket([]byte(bucketValues)).Cursor()
		for k, raw := c.Seek([]byte(prefix)); k != nil && bytes.HasPrefix(k, []byte(prefix)); k, raw = c.Next() {
			e, err := decode(k, raw)
			if err != nil {
				return err
			}
			out = append(out, e)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("list %s*: %w", prefix, err)
	}
	return out, nil
}

// Keys implements store.Store.
func (s *Store) Keys(ctx context.Context, prefix string) ([]store.Entry, error) {
	out, err := s.List(ctx, prefix)
	for i := range out {
		out[i].Value = nil
	}
	return out, err
}

// Put implements store.Store.
func (s *Store) Put(ctx context.Context, key string, value []byte, version store.Version) (store.Version, error) {
	if err := store.CheckEntry(key, value); err != nil {
		return 0, err
	}
	var next uint64
	err := s.with(ctx, false, func(tx *bolt.Tx) (err error) {
		b := tx.Bucket([]byte(bucketValues))
		if raw := b.Get([]byte(key)); raw != nil || version != 0 {
			if err := expect(key, raw, version); err != nil {
				return err
			}
		}
		if next, err = b.NextSequence(); err != nil { // of the file, so that it grows over a deletion
			return err
		}
		return b.Put([]byte(key), append(binary.BigEndian.AppendUint64(nil, next), value...))
	})
	if err != nil {
		return 0, fmt.Errorf("put %s: %w", key, err)
	}
	return store.Version(next), nil
}

func expect(key string, raw []byte, version store.Version) error {
	if raw == nil {
		return store.ErrConflict
	}
	e, err := decode([]byte(key), raw)
	if err == nil && e.Version != version {
		err = store.ErrConflict
	}
	return err
}

// Delete implements store.Store.
func (s *Store) Delete(ctx context.Context, key string, version store.Version) error {
	if err := store.CheckKey(key); err != nil {
		return err
	}
	err := s.with(ctx, false, func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte(bucketValues))
		raw := b.Get([]byte(key))
		if raw == nil {
			return store.ErrNotFound
		}
		if err := expect(key, raw, version); err != nil {
			return err
		}
		return b.Delete([]byte(key))
	})
	if err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// Close implements store.Store.
func (s *Store) Close() error {
	err := s.leases.Close(context.Background())
	s.mu.Lock() // until the call under way is through
	defer s.mu.Unlock()
	return err
}
