package knowledge

import (
	"encoding/json"
	"fmt"

	bolt "go.etcd.io/bbolt"

	"pitchpipe/controller/tuning"
)

// Tx is one change of the file: all of it becomes durable, or nothing. It is
// valid only within the function it was handed to, and not for concurrent use.
type Tx struct {
	tx      *bolt.Tx
	added   []Observation
	changes map[string][]byte // for the mirror; nil where there is none
}

// Update runs fn and commits what it wrote, on disk when Update returns nil.
// When fn returns an error nothing was written and the error comes back. Writers
// take turns: fn must not use the Store itself. Where there is a mirror it has the
// change first; one that it refuses was not made here either.
func (s *Store) Update(fn func(tx *Tx) error) error {
	var t *Tx
	published := false
	err := s.db.Update(func(tx *bolt.Tx) error {
		t = &Tx{tx: tx}
		if s.mirror != nil {
			t.changes = map[string][]byte{}
		}
		if err := fn(t); err != nil {
			return err
		}
		if err := s.publish(t.changes); err != nil {
			return err
		}
		published = len(t.changes) > 0
		return nil
	})
	if err != nil {
		if published { // the disk failed after the mirror had it
			s.missed()
		}
		return fmt.Errorf("update knowledge: %w", err)
	}
	s.committed(t.added)
	return nil
}

// Put keeps an observation; false: one of this ID was there already and stays.
func (t *Tx) Put(o Observation) (added bool, err error) {
	if o.ID == "" || o.Job == "" || o.Kind == (tuning.JobKind{}) {
		return false, fmt.Errorf("put observation %q: %w: it needs an id, a job and a kind", o.ID, ErrInvalid)
	}
	b := t.tx.Bucket([]byte(bucketObservations))
	if b.Get([]byte(o.ID)) != nil {
		return false, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return false, fmt.Errorf("put observation %q: %w: %w", o.ID, ErrInvalid, err)
	}
	if err := b.Put([]byte(o.ID), raw); err != nil {
		return false, fmt.Errorf("put observation %q: %w", o.ID, err)
	}
	// What is cached is what a reopened file would give, free of what the caller
	// still holds on to.
	var kept Observation
	if err := json.Unmarshal(raw, &kept); err != nil {
		return false, fmt.Errorf("put observation %q: %w: %w", o.ID, ErrInvalid, err)
	}
	t.change(mirrorObservations+o.ID, raw)
	t.added = append(t.added, kept)
	return true, nil
}

// SaveModel keeps the classifier's model, a JSON document.
func (t *Tx) SaveModel(model json.RawMessage) error {
	if !json.Valid(model) {
		return fmt.Errorf("save model: %w: not JSON", ErrInvalid)
	}
	if err := t.tx.Bucket([]byte(bucketMeta)).Put([]byte(keyModel), model); err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	t.change(keyModel, model)
	return nil
}

// PutJSON stores v as JSON under a key of a bucket, replacing what was there.
// Buckets of the general area come into being by their first key.
func (t *Tx) PutJSON(bucket, key string, v any) error {
	if bucket == "" || key == "" {
		return fmt.Errorf("put %s/%s: %w: bucket and key are needed", bucket, key, ErrInvalid)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("put %s/%s: %w: %w", bucket, key, ErrInvalid, err)
	}
	b, err := t.tx.Bucket([]byte(bucketRecords)).CreateBucketIfNotExists([]byte(bucket))
	if err != nil {
		return fmt.Errorf("put %s/%s: %w", bucket, key, err)
	}
	if err := b.Put([]byte(key), raw); err != nil {
		return fmt.Errorf("put %s/%s: %w", bucket, key, err)
	}
	t.change(mirrorKey(bucket, key), raw)
	return nil
}

// GetJSON reads a key into v, or returns ErrNotFound.
func (t *Tx) GetJSON(bucket, key string, v any) error { return getJSON(t.tx, bucket, key, v) }

// Delete removes a key. Removing what is not there does nothing.
func (t *Tx) Delete(bucket, key string) error {
	b := records(t.tx, bucket)
	if b == nil || b.Get([]byte(key)) == nil {
		return nil
	}
	if err := b.Delete([]byte(key)); err != nil {
		return fmt.Errorf("delete %s/%s: %w", bucket, key, err)
	}
	t.change(mirrorKey(bucket, key), nil)
	return nil
}

// PutJSON stores v in a change of its own; see Tx.PutJSON.
func (s *Store) PutJSON(bucket, key string, v any) error {
	return s.Update(func(tx *Tx) error { return tx.PutJSON(bucket, key, v) })
}

// Delete removes a key in a change of its own; see Tx.Delete.
func (s *Store) Delete(bucket, key string) error {
	return s.Update(func(tx *Tx) error { return tx.Delete(bucket, key) })
}

// GetJSON reads a key into v, or returns ErrNotFound.
func (s *Store) GetJSON(bucket, key string, v any) error {
	return s.db.View(func(tx *bolt.Tx) error { return getJSON(tx, bucket, key, v) })
}

// ReadJSON calls fn with the JSON under a key as it was stored, or returns ErrNotFound. The
// bytes are valid, and not to be written to, until fn returns. Its error means that they
// are damaged.
func (s *Store) ReadJSON(bucket, key string, fn func(raw []byte) error) error {
	return s.db.View(func(tx *bolt.Tx) error { return readJSON(tx, bucket, key, fn) })
}

// ForEachJSON calls fn for each key of a bucket in the order of the keys, with a
// function that decodes its value. A bucket that was never written has none. The
// first error ends it. fn sees the file as it was when ForEachJSON began and must
// not write to the Store.
func (s *Store) ForEachJSON(bucket string, fn func(key string, decode func(v any) error) error) error {
	return s.db.View(func(tx *bolt.Tx) error {
		b := records(tx, bucket)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, raw []byte) error {
			key := string(k)
			return fn(key, func(v any) error { return decode(bucket, key, raw, v) })
		})
	})
}

func records(tx *bolt.Tx, bucket string) *bolt.Bucket {
	return tx.Bucket([]byte(bucketRecords)).Bucket([]byte(bucket))
}

func getJSON(tx *bolt.Tx, bucket, key string, v any) error {
	return readJSON(tx, bucket, key, func(raw []byte) error { return json.Unmarshal(raw, v) })
}

func readJSON(tx *bolt.Tx, bucket, key string, fn func(raw []byte) error) error {
	b := records(tx, bucket)
	if b == nil {
		return fmt.Errorf("get %s/%s: %w", bucket, key, ErrNotFound)
	}
	raw := b.Get([]byte(key))
	if raw == nil {
		return fmt.Errorf("get %s/%s: %w", bucket, key, ErrNotFound)
	}
	return damaged(bucket, key, fn(raw))
}

func decode(bucket, key string, raw []byte, v any) error {
	return damaged(bucket, key, json.Unmarshal(raw, v))
}

func damaged(bucket, key string, err error) error {
	if err != nil {
		return fmt.Errorf("get %s/%s: %w: %w", bucket, key, ErrDamaged, err)
	}
	return nil
}
