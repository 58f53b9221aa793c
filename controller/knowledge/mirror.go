package knowledge

import (
	"context"
	"fmt"
	"strconv"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Snapshot is what a Mirror holds, or how that differs from the Snapshot before.
type Snapshot struct {
	Full   bool              // Values are all that there is
	Values map[string][]byte // new and changed ones; nil: deleted since
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

// mirrorWait is how long the mirror may take for one change.
const mirrorWait = 20 * time.Second

// Refresh brings the file up to what the mirror holds. It writes nothing to the mirror,
// so that who does not lead may do it too.
func (s *Store) Refresh(ctx context.Context) error {
	if s.mirror == nil {
		return nil
	}
	if err := s.mirror.Load(ctx, s.load); err != nil {
		return fmt.Errorf("load the shared knowledge: %w", err)
	}
	return nil
}

// Adopt is Refresh for who begins to lead: from now on the file counts. A mirror in
// which nothing is becomes one of this schema.
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

// load writes a snapshot into the file.
func (s *Store) load(snap Snapshot) error {
	if raw, ok := snap.Values[keySchema]; ok || snap.Full && len(snap.Values) > 0 {
		if err := checkSchema(raw); err != nil {
			return err
		}
		s.shared = true
	}
	err := s.db.Update(func(tx *bolt.Tx) error {
		if snap.Full {
			if err := clearFile(tx); err != nil {
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
