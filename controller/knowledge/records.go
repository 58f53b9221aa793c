package knowledge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	bolt "go.etcd.io/bbolt"

	"pitchpipe/controller/tuning"
)

// Tx is one change of the file: all of it becomes durable, or nothing. It is valid only within its
// function.
type Tx struct {
	tx      *bolt.Tx
	added   []Observation
	changes map[string][]byte // by key, see write
}

// Update runs fn and commits what it wrote, on disk when Update returns nil. fn must not use the
// Store itself. A change that the mirror refuses was not made here either.
func (s *Store) Update(fn func(tx *Tx) error) error {
	t := &Tx{changes: map[string][]byte{}}
	published := false
	err := s.db.Update(func(tx *bolt.Tx) error {
		t.tx = tx
		if err := fn(t); err != nil || s.mirror == nil || len(t.changes) == 0 {
			return err
		}
		if s.stale.Load() {
			return ErrStale
		}
		ctx, cancel := context.WithTimeout(context.Background(), mirrorWait)
		defer cancel()
		err := s.mirror.Write(ctx, t.changes)
		published = err == nil
		return err
	})
	if err != nil {
		if published { // the disk failed after the mirror had it
			s.stale.Store(true)
		}
		return fmt.Errorf("update knowledge: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range t.added {
		if s.cache != nil {
			s.cache.add(o) // unless a reader read it from the disk already
		}
	}
	return nil
}

func (t *Tx) write(key string, value []byte) error {
	t.changes[key] = value
	if err := apply(t.tx, key, value); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	return nil
}

func recordKey(bucket, key string) string {
	return bucketRecords + "/" + url.PathEscape(bucket) + "/" + key
}

// Keys that this version does not know stay where they are.
func apply(tx *bolt.Tx, key string, value []byte) error {
	var b *bolt.Bucket
	area, rest, below := strings.Cut(key, "/")
	switch {
	case key == keyModel:
		b = tx.Bucket([]byte(bucketMeta))
	case below && area == bucketObservations:
		b, key = tx.Bucket([]byte(bucketObservations)), rest
	case below && area == bucketRecords:
		name, rest, _ := strings.Cut(rest, "/")
		bucket, err := url.PathUnescape(name)
		if err != nil || bucket == "" || rest == "" {
			return fmt.Errorf("%w: the shared knowledge has the key %q", ErrDamaged, key)
		}
		if value == nil && records(tx, bucket) == nil {
			return nil
		}
		if b, err = tx.Bucket([]byte(bucketRecords)).CreateBucketIfNotExists([]byte(bucket)); err != nil {
			return fmt.Errorf("create %s: %w", bucket, err)
		}
		key = rest
	default:
		return nil
	}
	if value == nil {
		return b.Delete([]byte(key))
	}
	return b.Put([]byte(key), value)
}

// Put keeps an observation; false: one of this ID was there already and stays.
func (t *Tx) Put(o Observation) (added bool, err error) {
	if o.ID == "" || o.Job == "" || o.Kind == (tuning.JobKind{}) {
		return false, fmt.Errorf("put observation %q: %w: it needs an id, a job and a kind", o.ID, ErrInvalid)
	}
	if t.tx.Bucket([]byte(bucketObservations)).Get([]byte(o.ID)) != nil {
		return false, nil
	}
	raw, err := json.Marshal(o)
	// What is cached is what a reopened file would give, free of what the caller
	// still holds on to.
	var kept Observation
	if err == nil {
		err = json.Unmarshal(raw, &kept)
	}
	if err != nil {
		return false, fmt.Errorf("put observation %q: %w: %w", o.ID, ErrInvalid, err)
	}
	t.added = append(t.added, kept)
	return true, t.write(bucketObservations+"/"+o.ID, raw)
}

// SaveModel keeps the classifier's model, a JSON document.
func (t *Tx) SaveModel(model json.RawMessage) error {
	if !json.Valid(model) {
		return fmt.Errorf("save model: %w: not JSON", ErrInvalid)
	}
	return t.write(keyModel, model)
}

// PutJSON stores v as JSON under a key of a bucket, which comes into being by its first key.
func (t *Tx) PutJSON(bucket, key string, v any) error {
	raw, err := json.Marshal(v)
	if bucket == "" || key == "" {
		err = errors.New("bucket and key are needed")
	}
	if err != nil {
		return fmt.Errorf("put %s/%s: %w: %w", bucket, key, ErrInvalid, err)
	}
	return t.write(recordKey(bucket, key), raw)
}

// Delete removes a key. Removing what is not there does nothing.
func (t *Tx) Delete(bucket, key string) error {
	if b := records(t.tx, bucket); b == nil || b.Get([]byte(key)) == nil {
		return nil
	}
	return t.write(recordKey(bucket, key), nil)
}

// GetJSON reads a key into v, or returns ErrNotFound.
func (t *Tx) GetJSON(bucket, key string, v any) error {
	return readJSON(t.tx, bucket, key, func(raw []byte) error { return json.Unmarshal(raw, v) })
}

// PutJSON stores v in its own change; see Tx.PutJSON.
func (s *Store) PutJSON(bucket, key string, v any) error {
	return s.Update(func(tx *Tx) error { return tx.PutJSON(bucket, key, v) })
}

// Delete removes a key in its own change; see Tx.Delete.
func (s *Store) Delete(bucket, key string) error {
	return s.Update(func(tx *Tx) error { return tx.Delete(bucket, key) })
}

// GetJSON reads a key into v, or returns ErrNotFound.
func (s *Store) GetJSON(bucket, key string, v any) error {
	return s.ReadJSON(bucket, key, func(raw []byte) error { return json.Unmarshal(raw, v) })
}

// ReadJSON calls fn with the JSON under a key, valid until fn returns, or returns ErrNotFound. An
// error of fn means that the JSON is damaged.
func (s *Store) ReadJSON(bucket, key string, fn func(raw []byte) error) error {
	return s.db.View(func(tx *bolt.Tx) error { return readJSON(tx, bucket, key, fn) })
}

// ForEachJSON calls fn for each key of a bucket in order, with a function that decodes its value.
// fn must not write to the Store.
func (s *Store) ForEachJSON(bucket string, fn func(key string, decode func(v any) error) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		b := records(tx, bucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, raw []byte) error {
			key := string(k)
			return fn(key, func(v any) error { return damaged(bucket, key, json.Unmarshal(raw, v)) })
		})
	})
}

func records(tx *bolt.Tx, bucket string) *bolt.Bucket {
	return tx.Bucket([]byte(bucketRecords)).Bucket([]byte(bucket))
}

func readJSON(tx *bolt.Tx, bucket, key string, fn func(raw []byte) error) error {
	if b := records(tx, bucket); b != nil {
		if raw := b.Get([]byte(key)); raw != nil {
			return damaged(bucket, key, fn(raw))
		}
	}
	return fmt.Errorf("get %s/%s: %w", bucket, key, ErrNotFound)
}

func damaged(bucket, key string, err error) error {
	if err != nil {
		return fmt.Errorf("get %s/%s: %w: %w", bucket, key, ErrDamaged, err)
	}
	return nil
}
