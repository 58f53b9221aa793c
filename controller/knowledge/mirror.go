package knowledge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Snapshot is what a Mirror holds, or how that differs from the Snapshot before.
type Snapshot struct {
	Full   bool              // Values are all that there is
	Values map[string][]byte // new and changed ones
	Gone   []string          // keys that were deleted since; empty where it is full
}

// Mirror is where several controllers share their knowledge. The file of each is its
// working copy: what one of them changes is written to the mirror first, and only then
// to the file. Keys are any texts.
type Mirror interface {
	// Load hands what it holds to apply. Where apply fails, the next Snapshot is
	// relative to the same one as this.
	Load(ctx context.Context, apply func(Snapshot) error) error
	// Write makes the changes, all or none, where nothing of them was changed meanwhile
	// since it was loaded or written; a nil value deletes. It is durable when Write
	// returns. After an error that leaves open whether it happened the mirror sorts
	// that out itself before it writes the same keys again.
	Write(ctx context.Context, changes map[string][]byte) error
}

// ErrStale means that the file does not hold what the mirror holds: nothing may be done
// by it before Adopt.
var ErrStale = errors.New("knowledge is not that of the shared store")

// mirrorWait is how long the mirror may take for one change.
const mirrorWait = 20 * time.Second

// Keys of the mirror.
const (
	mirrorObservations = bucketObservations + "/"
	mirrorRecords      = bucketRecords + "/"
)

func mirrorKey(bucket, key string) string {
	return mirrorRecords + url.PathEscape(bucket) + "/" + key
}

// Refresh brings the file up to what the mirror holds. It writes nothing to the mirror,
// so that who does not lead may do it too.
func (s *Store) Refresh(ctx context.Context) error {
	if s.mirror == nil {
		return nil
	}
	if err := s.mirror.Load(ctx, s.apply); err != nil {
		return fmt.Errorf("load the shared knowledge: %w", err)
	}
	return nil
}

// Adopt is Refresh for who begins to lead: from now on the file counts. A mirror in
// which nothing is becomes one of this schema.
func (s *Store) Adopt(ctx context.Context) error {
	if s.mirror == nil {
		return nil
	}
	if err := s.Refresh(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	s.stale = false
	s.mu.Unlock()
	if s.shared {
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

// apply writes a snapshot into the file.
func (s *Store) apply(snap Snapshot) error {
	if raw, ok := snap.Values[keySchema]; ok {
		if v, err := strconv.Atoi(string(raw)); err != nil || v < 1 || v > SchemaVersion {
			return fmt.Errorf("%w: the schema version of the shared knowledge is %q, this version knows %d", ErrSchema, raw, SchemaVersion)
		}
		s.shared = true
	} else if snap.Full && len(snap.Values) > 0 {
		return fmt.Errorf("%w: the shared knowledge has no schema version", ErrSchema)
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if snap.Full {
			if err := clearFile(tx); err != nil {
				return err
			}
		}
		for key, value := range snap.Values {
			if err := applyOne(tx, key, value); err != nil {
				return err
			}
		}
		for _, key := range snap.Gone {
			if err := applyOne(tx, key, nil); err != nil {
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

func clearFile(tx *bolt.Tx) error {
	for _, name := range []string{bucketObservations, bucketRecords} {
		if err := tx.DeleteBucket([]byte(name)); err != nil {
			return fmt.Errorf("clear %s: %w", name, err)
		}
		if _, err := tx.CreateBucket([]byte(name)); err != nil {
			return fmt.Errorf("create %s: %w", name, err)
		}
	}
	return tx.Bucket([]byte(bucketMeta)).Delete([]byte(keyModel))
}

// applyOne writes one value of the mirror into the file; nil deletes it. Keys that this
// version does not know stay where they are.
func applyOne(tx *bolt.Tx, key string, value []byte) error {
	var b *bolt.Bucket
	switch {
	case key == keyModel:
		b = tx.Bucket([]byte(bucketMeta))
	case strings.HasPrefix(key, mirrorObservations):
		b, key = tx.Bucket([]byte(bucketObservations)), strings.TrimPrefix(key, mirrorObservations)
	case strings.HasPrefix(key, mirrorRecords):
		name, rest, ok := strings.Cut(strings.TrimPrefix(key, mirrorRecords), "/")
		bucket, err := url.PathUnescape(name)
		if !ok || err != nil || bucket == "" || rest == "" {
			return fmt.Errorf("%w: the shared knowledge has the key %q", ErrDamaged, key)
		}
		all := tx.Bucket([]byte(bucketRecords))
		if b, key = all.Bucket([]byte(bucket)), rest; b == nil {
			if value == nil {
				return nil
			}
			if b, err = all.CreateBucket([]byte(bucket)); err != nil {
				return fmt.Errorf("create %s: %w", bucket, err)
			}
		}
	default:
		return nil
	}
	if value == nil {
		return b.Delete([]byte(key))
	}
	return b.Put([]byte(key), value)
}

// change notes what a Tx wrote, where there is a mirror to write it to.
func (t *Tx) change(key string, value []byte) {
	if t.changes != nil {
		t.changes[key] = bytes.Clone(value)
	}
}

// publish writes the changes to the mirror, before they are on disk here.
func (s *Store) publish(changes map[string][]byte) error {
	if s.mirror == nil || len(changes) == 0 {
		return nil
	}
	s.mu.Lock()
	stale := s.stale
	s.mu.Unlock()
	if stale {
		return ErrStale
	}
	ctx, cancel := context.WithTimeout(context.Background(), mirrorWait)
	defer cancel()
	return s.mirror.Write(ctx, changes)
}

// missed notes that the mirror has something that the file has not.
func (s *Store) missed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stale = true
}
